-- fenced
-- The first record of a journal that the fenced write opens.
insert into records(journal, seq, token, at, kind, body) values (:journal, :seq, :token, :at, :kind, :body)
