-- read
select parent from runs where journal = :journal
