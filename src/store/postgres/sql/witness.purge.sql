-- unfenced: nobody asks after a batch that is this old
delete from tape.witness where at < tape.now_ms() - :older_ms
