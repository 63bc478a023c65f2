# Builds hashes of hashes and lists and deletes some of them: hash.pl [COUNT], 90,000 by default.
my $last = shift // 90000;
my (%h, @a);
for my $i (1 .. $last) {
    my $k = "key" . ($i % 9000);
    $h{$k}{count}++;
    $h{$k}{last} = $i;
    push @{ $h{$k}{list} }, [ $i, "v$i", { sq => $i * $i } ];
    push @a, split / /, "a b $i" if $i % 10 == 0;
    delete $h{ "key" . (($i * 7) % 9000) } if $i % 4 == 0;
}
my $n = 0;
for my $k (sort keys %h) { $n += @{ $h{$k}{list} || [] } }
print "$n\n";
