# A host that generates reports: perl reports.pl SEED REQUESTS
use strict;
use warnings;
my ($seed, $requests) = @ARGV;
srand($seed);
my %totals;
for (1 .. $requests) {
    my $customer = "customer " . int(rand(500));
    $totals{$customer}{"item " . int(rand(20))} += rand(100);
    if (rand() < 0.01) {
        my @rows = map { join ",", $_, %{$totals{$_}} } sort keys %totals;
        delete $totals{$customer};
    }
}
