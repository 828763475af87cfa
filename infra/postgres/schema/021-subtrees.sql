-- Roots are kept at every fourth level: a proof makes the levels between from 16 of them instead of 256, and reads as many.
-- Those of the new levels are made from the level four below: 1, then the hashes of the left and the right half (RFC 9162, 2.1.1).
do $$
declare
  made int;
begin
  for base in 0..5 loop
    create temporary table subtrees_below on commit drop as
      select workspace_id, sequence - 1 as index, hash from ops.feed_events where base = 0
      union all
      select workspace_id, index, hash from ops.feed_subtrees where base > 0 and level = base * 8;
    for step in 1..4 loop
      create temporary table subtrees_above on commit drop as
        select workspace_id, index / 2 as index, sha256('\x01'::bytea || string_agg(hash, ''::bytea order by index)) as hash
        from subtrees_below group by 1, index / 2 having count(*) = 2;
      drop table subtrees_below;
      alter table subtrees_above rename to subtrees_below;
    end loop;
    insert into ops.feed_subtrees (workspace_id, level, index, hash)
      select workspace_id, base * 8 + 4, index, hash from subtrees_below;
    get diagnostics made = row_count;
    drop table subtrees_below;
    exit when made = 0;
  end loop;
end $$;
