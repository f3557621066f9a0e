/** What the engine of runs can refuse. One class and one stable code each. */
import { PawlError } from '../core/errors.ts'

/** The run was made by a definition that this process does not have. */
export class RunDefinitionUnknown extends PawlError {
  readonly code = 'E_RUN_DEFINITION_UNKNOWN'
  constructor(runId: string, name: string, known: readonly string[]) {
    const list = known.length > 0 ? known.join(', ') : 'none'
    super(
      `Run ${runId} was made by the definition "${name}", which is not known here`,
      `Give it to openRuns, or to --runs. Known: ${list}.`,
      { runId, name, known },
    )
  }
}

/** There is a run with this id already, and it was made for something else. */
export class RunDiffers extends PawlError {
  readonly code = 'E_RUN_DIFFERS'
  constructor(runId: string, what: 'kind' | 'input') {
    super(
      `Run ${runId} is there already, and has another ${what}`,
      'Choose another id, or resume the run without naming its kind and input.',
      { runId, what },
    )
  }
}

/** A crash cut the making of the run short, before it was known what it should do. */
export class RunIncomplete extends PawlError {
  readonly code = 'E_RUN_INCOMPLETE'
  constructor(runId: string) {
    super(
      `Run ${runId} was never completely made, and nobody was told that it exists`,
      'Start it again with the same id and its input.',
      { runId },
    )
  }
}

/** The run is cancelled; the reason of its signal. */
export class RunCancelled extends PawlError {
  readonly code = 'E_RUN_CANCELLED'
  constructor(runId: string, reason: string) {
    super(`Run ${runId} was cancelled: ${reason}`, 'Stop; nothing more is recorded.', {
      runId,
      reason,
    })
  }
}

/** The process that works on the run is stopping; the reason of its signal. */
export class RunInterrupted extends PawlError {
  readonly code = 'E_RUN_INTERRUPTED'
  constructor(runId: string) {
    super(`The work on run ${runId} is interrupted`, 'Resume the run; nothing is lost.', { runId })
  }
}

/** A node ended the run as failed. */
export class RunFailure extends PawlError {
  readonly code = 'E_RUN_FAILURE'
  readonly reason: string
  constructor(runId: string, reason: string) {
    super(`Run ${runId} fails: ${reason}`, 'Fork it from an earlier event, or begin anew.', {
      runId,
      reason,
    })
    this.reason = reason
  }
}

/** The node has ended, and what it left behind may change nothing any more. */
export class NodeOver extends PawlError {
  readonly code = 'E_NODE_OVER'
  constructor(state: string) {
    super(
      `The node of ${state} is over`,
      'Wait for everything that a node begins before it returns.',
      { state },
    )
  }
}

/** A work item was asked for inside of another, whose inputs would then not be known. */
export class WorkNested extends PawlError {
  readonly code = 'E_WORK_NESTED'
  constructor(key: string, outer: string) {
    super(
      `Work item "${key}" was asked for inside of "${outer}"`,
      'Ask for it in the node, and hand on its result or an artifact.',
      { key, outer },
    )
  }
}

/** A work item was asked for while it is being done, or twice in one fan-out. */
export class WorkTwice extends PawlError {
  readonly code = 'E_WORK_TWICE'
  constructor(key: string) {
    super(`Work item "${key}" is asked for twice at once`, 'Give each item a key of its own.', {
      key,
    })
  }
}

/** A work item that is to be done again is not there. */
export class WorkUnknown extends PawlError {
  readonly code = 'E_WORK_UNKNOWN'
  constructor(runId: string, keys: readonly string[]) {
    super(
      `Run ${runId} has no work item ${keys.map((key) => `"${key}"`).join(', ')}`,
      'See its items: pawl run explain.',
      { runId, keys },
    )
  }
}

/** A job that was to do a work item did not succeed. */
export class WorkJobFailed extends PawlError {
  readonly code = 'E_WORK_JOB_FAILED'
  constructor(key: string, jobId: string, outcome: string, why: string) {
    super(
      `The job of work item "${key}" is ${outcome}: ${why}`,
      'See the job: pawl job show. Once it is mended, resume the run.',
      { key, jobId, outcome, why },
    )
  }
}

/** A work item needs a queue, and runs were opened without one. */
export class QueueMissing extends PawlError {
  readonly code = 'E_QUEUE_MISSING'
  constructor(key: string) {
    super(
      `Work item "${key}" is done by a job, but there is no Pawl to enqueue it`,
      'Give one to openRuns: { pawl }.',
      { key },
    )
  }
}

/** The run has no artifact of this name. */
export class ArtifactUnknown extends PawlError {
  readonly code = 'E_ARTIFACT_UNKNOWN'
  constructor(runId: string, name: string) {
    super(`Run ${runId} has no artifact "${name}"`, 'Write it first, or correct the name.', {
      runId,
      name,
    })
  }
}

/** A file or folder from outside cannot be an input of the run. */
export class InputFileInvalid extends PawlError {
  readonly code = 'E_INPUT_FILE_INVALID'
  constructor(path: string, why: string) {
    super(`${path} cannot be an input: ${why}`, 'Name another, or change what is there.', {
      path,
      why,
    })
  }
}

/** A telemetry server did not take events; they are kept and sent again. */
export class TelemetryRefused extends PawlError {
  readonly code = 'E_TELEMETRY_REFUSED'
  constructor(server: string, status: number) {
    super(
      `The telemetry server ${server} answered with status ${status}`,
      'Check its address and its token; nothing is lost.',
      { server, status },
    )
  }
}
