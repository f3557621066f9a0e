import type { StoreCheck } from './check.ts'

/** What SQLite says of its own pages and indexes; reads the whole file. */
export const storageIsSound: StoreCheck = {
  name: 'storage-is-sound',
  promise: 'P1',
  says: 'The database finds its own file whole.',
  look: async ({ store }) => {
    const lines = await store.examination.storage()
    return lines.map((what) => ({
      promise: 'P1',
      severity: 'error',
      subject: 'the file',
      what,
      evidence: {},
      advice: /^CHECK/.test(what)
        ? 'The other checks tell which rows; a repair of those mends it.'
        : 'Stop everything, copy the file, and restore a backup, or what ".recover" of the ' +
          'sqlite3 shell gets out of the copy.',
    }))
  },
}
