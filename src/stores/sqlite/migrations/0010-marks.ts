/**
 * Marks. `outbox.mark` names the key under which an effect was declared, with a checksum of its
 * content; see `../../effects.ts`. `machines.mark` is a checksum of the definition of a lifecycle,
 * written together with it; see `../../machines.ts`. A row that does not agree with its mark was
 * changed by something else than Pawl. Rows of earlier releases have none, and are not checked.
 */
export const sql = `
ALTER TABLE pawl_outbox ADD COLUMN mark TEXT;
ALTER TABLE pawl_machines ADD COLUMN mark TEXT;
`
