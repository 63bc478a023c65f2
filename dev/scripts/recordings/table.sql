CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<85000) INSERT INTO t SELECT i, printf('row %d %s', i, hex(i*7919)), i*1.5 FROM n;
CREATE INDEX tb ON t(b);
SELECT count(*), sum(length(b)) FROM t WHERE b LIKE '%9%';
SELECT substr(b,1,6) k, count(*), group_concat(a) FROM t GROUP BY k ORDER BY 2 DESC LIMIT 5;
UPDATE t SET b = b || upper(b) WHERE a % 3 = 0;
SELECT a, json_object('a',a,'b',b) FROM t ORDER BY b LIMIT 3;
DELETE FROM t WHERE a % 5 = 0;
