/**
 * Nothing: SQLite has no functions that are kept in a file, so it has no `enqueue` in SQL and keeps
 * no declarations of job types. The number keeps the migrations of both stores in step.
 */
export const sql = `-- No change on SQLite.
`
