/** Errors that only a journal of runs can give. One class and one stable code each. */
import { messageOf, PawlError } from '../../core/errors.ts'
import type { FileInfo } from '../../core/ports.ts'
import type { Damage, Holder } from './journal.ts'

/** The name of a run or an artifact cannot be kept under that name on every system. */
export class RunNameInvalid extends PawlError {
  readonly code = 'E_RUN_NAME_INVALID'
  constructor(what: 'run id' | 'artifact name', why: string) {
    super(`The ${what} ${why}`, 'Choose another; see the guide for what may be in it.', {
      what,
      why,
    })
  }
}

/** Another process holds the run, and a run has one writer at a time. */
export class RunHeld extends PawlError {
  readonly code = 'E_RUN_HELD'
  /** `hasDied`: its holder is gone, but the lease is not. */
  constructor(runId: string, holder: Holder | undefined, hasDied = false) {
    const who = holder === undefined ? 'another' : `${holder.host}, process ${holder.pid}`
    super(
      hasDied
        ? `Run ${runId} is reserved for a process that has died`
        : `Run ${runId} is held by ${who}`,
      hasDied
        ? 'Its lease ends by itself, after 30 seconds unless said otherwise. Try again then.'
        : 'Wait until it is done, ask it to cancel the run, or stop that process.',
      { runId, ...(hasDied ? { hasDied } : { holder }) },
    )
  }
}

/** The run is no longer held by this writer: its lease expired and another may hold it. */
export class RunLost extends PawlError {
  readonly code = 'E_RUN_LOST'
  constructor(runId: string) {
    super(
      `Run ${runId} is no longer held by this writer`,
      'Nothing was written. Stop working on it, and open it again.',
      { runId },
    )
  }
}

/** The log of a run cannot be believed from some place on; nothing was touched. */
export class RunLogDamaged extends PawlError {
  readonly code = 'E_RUN_LOG_DAMAGED'
  readonly damage: Damage
  constructor(runId: string, damage: Damage) {
    const { line, offset, why } = damage
    super(
      `The log of run ${runId} is damaged in line ${line}, byte ${offset}: ${why}`,
      `Nothing was changed. Restore the log from a backup${forkHint(runId, line)}.`,
      { runId, ...damage },
    )
    this.damage = damage
  }
}

/** What comes before the damage can go on as a run of its own, if there is anything. */
function forkHint(runId: string, line: number): string {
  return line > 1
    ? `, or go on from its last good event: pawl run fork ${runId} --at ${line - 1}`
    : ''
}

/** An event does not conform to `specs/schemas/event.schema.json`; nothing was written. */
export class EventInvalid extends PawlError {
  readonly code = 'E_EVENT_INVALID'
  constructor(runId: string, type: string, why: string) {
    super(
      `An event ${type} of run ${runId} does not conform to its schema: ${why}`,
      'Nothing was written. Correct what the event is made of.',
      { runId, type, why },
    )
  }
}

/** A failure was to be recorded for a run whose log can be read. */
export class RunNotDamaged extends PawlError {
  readonly code = 'E_RUN_NOT_DAMAGED'
  constructor(runId: string) {
    super(`The log of run ${runId} is not damaged`, 'Open the run and fail it there.', { runId })
  }
}

/** Whether an artifact was written by Pawl itself, such as `run:definition`. */
function isOwn(name: string): boolean {
  return name.startsWith('run:')
}

const RESTORE_OWN =
  'Pawl wrote it when the run was made and cannot make it again. Restore it from a backup, or ' +
  'start the work as a new run.'

/** The content of an artifact is not there. */
export class ArtifactMissing extends PawlError {
  readonly code = 'E_ARTIFACT_MISSING'
  constructor(runId: string, name: string, sha256: string) {
    super(
      `The content of artifact "${name}" of run ${runId} is missing`,
      isOwn(name) ? RESTORE_OWN : 'Run its work item again, or restore the file.',
      { runId, name, sha256 },
    )
  }
}

/** The content of an artifact is not what was written. */
export class ArtifactChanged extends PawlError {
  readonly code = 'E_ARTIFACT_CHANGED'
  constructor(runId: string, name: string, expected: string, found: string) {
    super(
      `The content of artifact "${name}" of run ${runId} was changed`,
      isOwn(name)
        ? RESTORE_OWN
        : 'What depends on it is stale: invalidate it, or restore the file.',
      { runId, name, expected, found },
    )
  }
}

/** The disk or the database refused; nothing was added to the run. */
export class JournalFailed extends PawlError {
  readonly code = 'E_JOURNAL_FAILED'
  constructor(runId: string, doing: string, cause: unknown) {
    const why = messageOf(cause)
    super(`Run ${runId}: ${doing} failed: ${why}`, 'Nothing was added. See the cause; try again.', {
      runId,
      doing,
      why,
    })
    this.cause = cause
  }
}

/** The journal or the writer was closed, or a failure left it in a state that cannot be trusted. */
export class JournalClosed extends PawlError {
  readonly code = 'E_JOURNAL_CLOSED'
  constructor(what: string, why: string) {
    super(`${what} ${why}`, 'Open it again.', { what, why })
  }
}

/** A path of the journal is not what it must be: a link, or not a file or folder. */
export class PathRefused extends PawlError {
  readonly code = 'E_PATH_REFUSED'

  /** The refusal of what is there, because it is not what is wanted there. */
  static kind(path: string, { kind }: Pick<FileInfo, 'kind'>, wanted: 'file' | 'folder') {
    return new PathRefused(path, `is ${KINDS[kind]}, not a ${wanted}`)
  }

  constructor(path: string, why: string) {
    super(
      `${path} ${why}`,
      'Nothing was read or written there. Remove it, or name another folder.',
      {
        path,
        why,
      },
    )
  }
}

const KINDS: Readonly<Record<FileInfo['kind'], string>> = {
  file: 'a file',
  folder: 'a folder',
  link: 'a link',
  other: 'a device, a pipe or a socket',
}

/** What was to be imported is not a bundle, or was changed on its way; nothing was imported. */
export class BundleInvalid extends PawlError {
  readonly code = 'E_BUNDLE_INVALID'
  constructor(line: number, why: string) {
    const what =
      line === 0 ? `The bundle is not valid: ${why}` : `Line ${line} of the bundle ${why}`
    super(what, 'Nothing was imported. Export the run again.', { line, why })
  }
}
