-- fenced
-- A plain insert after the fence has answered: INSERT … SELECT from the table it inserts into is materialised and costs
-- twice as much, RETURNING three times.
insert into records(journal, seq, token, at, kind, body) values (:journal, :seq, :token, :at, :kind, :body)
