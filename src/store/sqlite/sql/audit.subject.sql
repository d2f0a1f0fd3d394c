-- read
select coalesce((select u.id from runs u where u.journal = l.run), (select n.name from names n where n.journal = l.journal)) as subject
from leases l where l.journal = :journal
