-- read
-- What a find with this nonce has acquired: its answer may have been lost.
select journal from leases where owner = :owner and nonce = :nonce and (:tenant is null or tenant = :tenant)
