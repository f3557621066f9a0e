/** The errors of journals of runs. Each has its own class and a stable code. */
import { messageOf, PawlError } from '../../core/errors.ts'
import type { FileInfo } from '../../core/ports.ts'
import type { Damage, Holder } from './journal.ts'

/** The name of a run or an artifact cannot be a file name on every system. */
export class RunNameInvalid extends PawlError {
  readonly code = 'E_RUN_NAME_INVALID'
  constructor(what: 'run id' | 'artifact name', why: string) {
    super(
      `The ${what} ${why}`,
      'Use another name: letters, digits, dots, dashes and underscores are always allowed.',
      { what, why },
    )
  }
}

/** Another process holds the run, and a run has one writer at a time. */
export class RunHeld extends PawlError {
  readonly code = 'E_RUN_HELD'
  /** `hasDied`: its holder is gone, but the lease is not. */
  constructor(runId: string, holder: Holder | undefined, hasDied = false) {
    const who = holder === undefined ? 'another process' : `${holder.host}, process ${holder.pid}`
    super(
      hasDied
        ? `The lease on run ${runId} belongs to a process that has died`
        : `Run ${runId} is in use by ${who}`,
      hasDied
        ? 'The lease expires by itself, after 30 seconds by default. Try again then.'
        : `Wait until it has ended, stop it, or cancel the run: pawl run cancel ${runId}.`,
      { runId, ...(hasDied ? { hasDied } : { holder }) },
    )
  }
}

/** This writer lost the lease on the run; another process may hold it. */
export class RunLost extends PawlError {
  readonly code = 'E_RUN_LOST'
  constructor(runId: string) {
    super(
      `This process no longer holds the lease on run ${runId}`,
      `Nothing was written. Stop the work, and resume the run: pawl run resume ${runId}.`,
      { runId },
    )
  }
}

/** The log of a run is damaged from some line on. Nothing was changed. */
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

/** The events before the damage, if there are any, can continue as a new run. */
function forkHint(runId: string, line: number): string {
  return line > 1
    ? `, or continue from its last good event: pawl run fork ${runId} --at ${line - 1}`
    : ''
}

/** An event does not conform to `specs/schemas/event.schema.json`; nothing was written. */
export class EventInvalid extends PawlError {
  readonly code = 'E_EVENT_INVALID'
  constructor(runId: string, type: string, why: string) {
    super(
      `An event ${type} of run ${runId} does not conform to its schema: ${why}`,
      'Nothing was written. Change the values that the message names.',
      { runId, type, why },
    )
  }
}

/** `failDamaged` was called for a run whose log can be read. */
export class RunNotDamaged extends PawlError {
  readonly code = 'E_RUN_NOT_DAMAGED'
  constructor(runId: string) {
    super(
      `The log of run ${runId} is not damaged`,
      'Only damaged logs need a record of failure. To end the run, cancel it.',
      { runId },
    )
  }
}

/** Returns true if Pawl wrote the artifact itself, such as `run:definition`. */
function isOwn(name: string): boolean {
  return name.startsWith('run:')
}

const RESTORE_OWN =
  'Pawl wrote it when the run was created and cannot write it again. Restore it from a backup, ' +
  'or start a new run.'

/** The content of an artifact is missing. */
export class ArtifactMissing extends PawlError {
  readonly code = 'E_ARTIFACT_MISSING'
  constructor(runId: string, name: string, sha256: string) {
    super(
      `The content of artifact "${name}" of run ${runId} is missing`,
      isOwn(name)
        ? RESTORE_OWN
        : 'Run its work item again (pawl run resume --force KEY), or restore the file.',
      { runId, name, sha256 },
    )
  }
}

/** The content of an artifact differs from its recorded hash. */
export class ArtifactChanged extends PawlError {
  readonly code = 'E_ARTIFACT_CHANGED'
  constructor(runId: string, name: string, expected: string, found: string) {
    super(
      `The content of artifact "${name}" of run ${runId} was changed`,
      isOwn(name)
        ? RESTORE_OWN
        : 'Run its work item again (pawl run resume --force KEY), or restore the file.',
      { runId, name, expected, found },
    )
  }
}

/** The disk or the database failed. Nothing was added to the run. */
export class JournalFailed extends PawlError {
  readonly code = 'E_JOURNAL_FAILED'
  constructor(runId: string, doing: string, cause: unknown) {
    const why = messageOf(cause)
    super(
      `Run ${runId}: ${doing} failed: ${why}`,
      'Nothing was added to the run. Remove the cause, then repeat the call.',
      { runId, doing, why },
    )
    this.cause = cause
  }
}

/** The journal or the writer was closed, or a failed write made its state unknown. */
export class JournalClosed extends PawlError {
  readonly code = 'E_JOURNAL_CLOSED'
  constructor(what: string, why: string) {
    super(`${what} ${why}`, 'Open it again, for example with openRuns.', { what, why })
  }
}

/** A path of the journal is a link, or not the file or folder that it must be. */
export class PathRefused extends PawlError {
  readonly code = 'E_PATH_REFUSED'

  /** The error for an entry of the wrong kind. */
  static kind(path: string, { kind }: Pick<FileInfo, 'kind'>, wanted: 'file' | 'folder') {
    return new PathRefused(path, `is ${KINDS[kind]}, not a ${wanted}`)
  }

  constructor(path: string, why: string) {
    super(
      `${path} ${why}`,
      'Nothing was read or written there. Remove it, or use another folder (--dir).',
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

/** The file is not a bundle, or its content was changed. Nothing was imported. */
export class BundleInvalid extends PawlError {
  readonly code = 'E_BUNDLE_INVALID'
  constructor(line: number, why: string) {
    const what =
      line === 0 ? `The bundle is not valid: ${why}` : `Line ${line} of the bundle ${why}`
    super(what, 'Nothing was imported. Export the run again: pawl run export.', { line, why })
  }
}
