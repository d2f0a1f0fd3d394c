-- unfenced: nobody asks after a batch that is this old
delete from witness where at < :at - :older_ms
