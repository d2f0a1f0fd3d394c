-- read
-- journal.head, of many.
select i.journal, (select coalesce(max(r.seq), 0) from tape.records r where r.journal = i.journal) as head
from unnest(:journals::bigint[]) as i(journal)
