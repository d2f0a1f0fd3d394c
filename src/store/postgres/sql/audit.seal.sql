-- unfenced: with the row of audit.head locked
update tape.audit_heads set hash = :hash where tenant = :tenant
