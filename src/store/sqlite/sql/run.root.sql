-- read
select root from runs where journal = :journal
