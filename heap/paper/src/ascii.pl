# The paper's ASCII/Perl: reads lines of text, or writes them.
my ($mode) = @ARGV;
if ($mode eq 'write') {
    # Converts raw 32-byte records.
    while (read STDIN, my $record, 32) {
        my ($tag, $size, $address, $old) = unpack 'Q<4', $record;
        if    ($tag == 2) { printf "%u %x\n",       $tag, $address }
        elsif ($tag == 4) { printf "%u %u %x %x\n", $tag, $size, $address, $old }
        else              { printf "%u %u %x\n",    $tag, $size, $address }
    }
} else {
    # Prints the number of records, and each field of all of them combined by exclusive or.
    my ($count, @all) = (0, 0, 0, 0, 0);
    while (<STDIN>) {
        my ($tag, $size, $address, $old) = split;
        ($size, $address) = (0, $size) if $tag == 2;
        $count++;
        $all[0] ^= $tag + 0;
        $all[1] ^= $size + 0;
        $all[2] ^= hex $address;
        $all[3] ^= hex($old // 0);
    }
    print "$count @all\n";
}
