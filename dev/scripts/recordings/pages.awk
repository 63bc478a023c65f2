# Converts text to PostScript pages with fonts, colors, clipped curves and dashed lines.
BEGIN { srand(7); split("Times-Roman Helvetica Courier Times-Italic Helvetica-Bold Palatino-Roman Bookman-Demi", font, " "); print "%!PS" }
function place() { return sprintf("%d %d", rand() * 500, rand() * 700) }
{
    gsub(/[()\\]/, "\\\\&")
    if (NR % 40 == 1 && NR > 1) print "showpage"
    printf "/%s findfont %d scalefont setfont %.2f %.2f %.2f setrgbcolor ", font[1 + NR % 7], 7 + rand() * 6, rand(), rand(), rand()
    printf "40 %d moveto (%s) show\n", 780 - 18 * (NR % 40), $0
    if (NR % 5) next
    printf "gsave newpath %s moveto %s %s %s curveto %s lineto closepath clip ", place(), place(), place(), place(), place()
    printf "newpath %s %d 0 360 arc fill grestore ", place(), rand() * 90
    printf "[%d %d] 0 setdash %s moveto %s lineto stroke [] 0 setdash\n", 1 + rand() * 9, 1 + rand() * 9, place(), place()
}
END { print "showpage" }
