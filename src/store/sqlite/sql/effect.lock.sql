-- read
-- Who decides over the effect now: nobody else writes until we are done.
select authority from effects where run = :run and pos = :pos and sub = :sub
