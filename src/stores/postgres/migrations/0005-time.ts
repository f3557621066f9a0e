/**
 * Changes nothing: the server's clock is the time of this store. The fifth migration of the SQLite
 * store adds the time of its file, and the numbers of both stores stay in step.
 */
export const sql = (): string => 'SELECT 1;'
