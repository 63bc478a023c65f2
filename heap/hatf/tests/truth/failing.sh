names=
for number in 1 2 3 4 5 6 7 8; do
    names="$names $number"
done
exit 4
