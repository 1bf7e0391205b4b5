-- Caller: WorkerStorage::finalise, once per lease, delay and error.
-- Intent: Processing -> Pending, the attempt counted, due again after the delay, with the error added to those before
--   it (the newest 25 are kept).
-- Invariant: only the holder. A row that would be due after its deadline, or whose cancellation an operator asked for,
--   is refused here and goes to the dead-letter queue in the same transaction: a cancel wins over a retry.
--   LeaseId stays, so that a repeated call recognises its own effect.
-- Twin: the same.
UPDATE JobsHot NOT INDEXED
SET Status = 0, WorkerId = NULL, FetchedAtUtc = NULL, StartedAtUtc = NULL, HeartbeatUtc = NULL, SuspectUtc = NULL,
    Progress = NULL, ProgressNote = NULL,
    ScheduledAtUtc = @due, IsReady = @due <= @now,
    Errors = json_insert(
        CASE
            WHEN Errors IS NULL OR NOT json_valid(Errors) THEN '[]'
            WHEN json_array_length(Errors) >= 25 THEN json_remove(Errors, '$[0]')
            ELSE Errors
        END,
        '$[#]',
        json_object(
            'attempt', coalesce(@error_attempt, AttemptCount), 'at_ms', @now, 'kind', @error_kind, 'text', @error_text
        )
    )
WHERE Seq IN (SELECT value FROM rarray(@seqs))
    AND WorkerId = @worker AND LeaseId = @lease AND Status = 2
    AND @due <= DeadlineUtc AND CancelRequestedUtc IS NULL
RETURNING Id, Queue;
