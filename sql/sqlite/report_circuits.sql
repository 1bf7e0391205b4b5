-- Caller: WorkerStorage::report_circuits, when a circuit opens or closes, and with the heartbeats while one is open.
-- Intent: this worker's circuits that are not closed, in place of those that it told of before. What a worker left an
--   hour ago goes too: it died.
-- Invariant: of the living, a worker changes its own rows only. The table holds as many rows as workers have circuits open.
-- Twin: the same, in one batch.
DELETE FROM Circuits WHERE WorkerId = @worker OR SeenAtUtc < @now - 3600000;

INSERT INTO Circuits (WorkerId, Type, State, Failures, Error, OpenedAtUtc, RetryAtUtc, SeenAtUtc)
VALUES (@worker, @type, @state, @failures, @error, @now - @open_for_ms, @now + @retry_in_ms, @now);
