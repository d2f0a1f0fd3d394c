-- read
select coalesce((select u.id from tape.runs u where u.journal = l.run), (select n.name from tape.names n where n.journal = l.journal)) as subject
from tape.leases l where l.journal = :journal
