#!/bin/sh
# Starts varnishd with the arguments as a command prefix, requests pages from it, and stops it.
dir=$(mktemp -d); chmod 755 $dir
cat > $dir/pages.vcl <<'VCL'
vcl 4.1;
backend none none;
sub vcl_recv { return (synth(200, "page")); }
sub vcl_synth { set resp.http.x-of = req.url; synthetic("page " + req.url + " of many"); return (deliver); }
VCL
"$@" varnishd -F -n $dir/w -P $dir/pid -a 127.0.0.1:0 -f $dir/pages.vcl -s default,16m -p thread_pool_min=10 > $dir/log 2>&1 &
for i in $(seq 300); do port=$(varnishadm -n $dir/w debug.listen_address 2>/dev/null | awk '{print $3}' | head -1); [ -n "$port" ] && break; sleep 0.1; done
[ -n "$port" ] || { kill $! 2>/dev/null; cat $dir/log; rm -rf $dir; exit 1; }
for i in $(seq 40); do curl -s $(for j in $(seq 50); do echo "http://127.0.0.1:$port/$i/$j"; done) > /dev/null; done
sleep 0.5
kill -TERM $(cat $dir/pid)
wait
tail -2 $dir/log; rm -rf $dir
