-- read
-- The next stretch of runs, by their numbers.
select max(x.journal) as until from (select journal from runs where journal > :after order by journal limit :limit) x
