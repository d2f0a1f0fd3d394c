-- unfenced: with the row of audit.head locked
update audit_heads set hash = :hash where tenant = :tenant
