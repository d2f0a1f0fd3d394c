-- unfenced: with the row of audit.head locked
insert into tape.audit(tenant, n, at, journal, subject, body, hash) values (:tenant, :n, :moment, :journal, :subject, :body, :hash)
