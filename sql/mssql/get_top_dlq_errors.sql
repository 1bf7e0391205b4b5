-- Caller: OperatorStorage::get_top_dlq_errors.
-- Intent: the commonest errors among the newest 1,000 dead jobs.
-- Invariant: none to protect, it reads: 1,000 rows, however many are dead.
-- Twin: the same.
-- Locks: none kept.
-- Retry: safe, it reads.
-- @limit int
-- Answers: Type, Reason, ErrorStart, Count, LastMs.
SET NOCOUNT ON;

SELECT /* chokaq:get_top_dlq_errors */ TOP (@limit) g.Type, g.Reason, g.ErrorStart, COUNT_BIG(*) AS Count, DATEDIFF_BIG(millisecond, '19700101', MAX(g.FailedAtUtc)) AS LastMs
FROM (
    SELECT TOP (1000)
        x.Type, x.Reason, x.FailedAtUtc,
        -- A pair of surrogates is not cut in two: half of one is no text for the client.
        CONVERT(nvarchar(200), LEFT(
            COALESCE(x.Error, N''),
            CASE WHEN UNICODE(SUBSTRING(x.Error, 200, 1)) BETWEEN 55296 AND 56319 THEN 199 ELSE 200 END
        )) COLLATE Latin1_General_100_BIN2 AS ErrorStart
    FROM [chokaq].JobsDLQ AS x WITH (INDEX(PK_JobsDLQ))
    ORDER BY x.FailedAtUtc DESC, x.Id DESC
) AS g
GROUP BY g.Type, g.Reason, g.ErrorStart
ORDER BY COUNT_BIG(*) DESC, MAX(g.FailedAtUtc) DESC
OPTION (MAXDOP 1, KEEPFIXED PLAN);
