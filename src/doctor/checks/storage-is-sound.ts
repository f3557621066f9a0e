import type { StoreCheck } from './check.ts'

/** Runs the integrity check of SQLite, which reads the whole file. */
export const storageIsSound: StoreCheck = {
  name: 'storage-is-sound',
  promise: 'P1',
  says: 'The integrity check of the database finds no damage.',
  look: async ({ store }) => {
    const lines = await store.examination.storage()
    return lines.map((what) => ({
      promise: 'P1',
      severity: 'error',
      subject: 'the file',
      what,
      evidence: {},
      advice: /^CHECK/.test(what)
        ? 'Other findings name the rows. Their repair also corrects this one.'
        : 'Stop every process that uses the file and copy it. Then restore a backup, or what ' +
          '".recover" of the sqlite3 shell reads from the copy.',
    }))
  },
}
