-- unfenced: by the transaction that claimed the key
update tape.repeats set answer = :answer where tenant = :tenant and key = :key
