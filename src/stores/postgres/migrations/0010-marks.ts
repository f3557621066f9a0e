/**
 * Marks. `outbox.mark` names the key under which an effect was declared, with a checksum of its
 * content; see `../../effects.ts`. `machines.mark` is a checksum of the definition of a lifecycle,
 * written together with it; see `../../machines.ts`. A row that does not agree with its mark was
 * changed by something else than Pawl. Rows of earlier releases have none, and are not checked.
 */
const SQL = `
ALTER TABLE @schema.outbox ADD COLUMN mark text;
ALTER TABLE @schema.machines ADD COLUMN mark text;
`

/** The statements, for a schema whose name is quoted already. */
export const sql = (schema: string): string => SQL.replaceAll('@schema', () => schema)
