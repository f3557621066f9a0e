/** Errors of a SQLite file: of its disk, of its locks, and of handles that do not belong to it. */
import { PawlError } from '../../core/errors.ts'

/** The file is used in this process by something that breaks the locks of SQLite. */
export class StoreUnsafe extends PawlError {
  readonly code = 'E_STORE_UNSAFE'
  constructor(path: string, why: string) {
    super(
      `The store ${path} is not safe in this process: ${why}`,
      'Restart the process. Inside it, use the file only through pawl.transaction() or a handle ' +
        'of the same SQLite library; do not read or copy the file with node:fs.',
      { path, why },
    )
  }
}

/** The handle given as `tx` belongs to another SQLite library than the one that Pawl uses. */
export class TxForeign extends PawlError {
  readonly code = 'E_TX_FOREIGN'
  constructor(theirs: string, ours: string) {
    super(
      `The handle given as tx is ${theirs}, and Pawl uses ${ours}`,
      'Two SQLite libraries on one file in one process lose data. Use pawl.transaction(), or ' +
        'open your own handle with the library that Pawl uses.',
      { theirs, ours },
    )
  }
}
