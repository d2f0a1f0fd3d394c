-- unfenced: remembers the boot to which the lease clock belongs; answers a row only to the process that sees a new one
update meta set boot = :boot, anchor = :anchor where boot <> :boot returning boot
