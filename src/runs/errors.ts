/** The errors of runs. Each has its own class and a stable code. */
import { PawlError } from '../core/errors.ts'

/** The run was started with a definition that this process does not have. */
export class RunDefinitionUnknown extends PawlError {
  readonly code = 'E_RUN_DEFINITION_UNKNOWN'
  constructor(runId: string, name: string, known: readonly string[]) {
    const list = known.length > 0 ? known.join(', ') : 'none'
    super(
      `Run ${runId} was started with the definition "${name}", which this process does not have`,
      `Pass it to openRuns({ runs }), or to the command as --runs FILE. Known: ${list}.`,
      { runId, name, known },
    )
  }
}

/** A run with this id already exists, with another definition or another input. */
export class RunDiffers extends PawlError {
  readonly code = 'E_RUN_DIFFERS'
  constructor(runId: string, what: 'kind' | 'input') {
    super(
      `Run ${runId} already exists and has another ${what === 'kind' ? 'definition' : what}`,
      `Use another id, or resume the run as it is: pawl run resume ${runId}.`,
      { runId, what },
    )
  }
}

/** The process crashed while it created the run, before the definition and input were stored. */
export class RunIncomplete extends PawlError {
  readonly code = 'E_RUN_INCOMPLETE'
  constructor(runId: string) {
    super(
      `Run ${runId} was not created completely: the process crashed before it was acknowledged`,
      'Start it again with the same id and the same input.',
      { runId },
    )
  }
}

/** The run was cancelled. The abort signal of its nodes carries this error. */
export class RunCancelled extends PawlError {
  readonly code = 'E_RUN_CANCELLED'
  constructor(runId: string, reason: string) {
    super(
      `Run ${runId} was cancelled: ${reason}`,
      'Stop the work of the node: nothing more is recorded.',
      {
        runId,
        reason,
      },
    )
  }
}

/** The process that runs the nodes is stopping. Their abort signal carries this error. */
export class RunInterrupted extends PawlError {
  readonly code = 'E_RUN_INTERRUPTED'
  constructor(runId: string) {
    super(
      `The work on run ${runId} was interrupted`,
      `Nothing is lost. Continue it: pawl run resume ${runId}.`,
      { runId },
    )
  }
}

/** A node ended the run as failed. */
export class RunFailure extends PawlError {
  readonly code = 'E_RUN_FAILURE'
  readonly reason: string
  constructor(runId: string, reason: string) {
    super(
      `Run ${runId} failed: ${reason}`,
      `Continue from an earlier event (pawl run fork ${runId} --at SEQ), or start a new run.`,
      { runId, reason },
    )
    this.reason = reason
  }
}

/** A function of the run's context was called after its node had returned. */
export class NodeOver extends PawlError {
  readonly code = 'E_NODE_OVER'
  constructor(state: string) {
    super(
      `The node of ${state} has already returned`,
      'Await every call of the run context before the node returns.',
      { state },
    )
  }
}

/** A work item was requested inside another one, whose inputs would then be incomplete. */
export class WorkNested extends PawlError {
  readonly code = 'E_WORK_NESTED'
  constructor(key: string, outer: string) {
    super(
      `Work item "${key}" was requested inside work item "${outer}"`,
      'Call run.work for it in the node, and pass its result or an artifact to the other item.',
      { key, outer },
    )
  }
}

/** A work item was requested while it is running, or twice in one fan-out. */
export class WorkTwice extends PawlError {
  readonly code = 'E_WORK_TWICE'
  constructor(key: string) {
    super(
      `Work item "${key}" was requested twice at the same time`,
      'Give each work item its own key, or await the first call.',
      { key },
    )
  }
}

/** A work item that should run again does not exist. */
export class WorkUnknown extends PawlError {
  readonly code = 'E_WORK_UNKNOWN'
  constructor(runId: string, keys: readonly string[]) {
    super(
      `Run ${runId} has no work item ${keys.map((key) => `"${key}"`).join(', ')}`,
      `See its work items: pawl run explain ${runId}.`,
      { runId, keys },
    )
  }
}

/** The job of a work item did not succeed. */
export class WorkJobFailed extends PawlError {
  readonly code = 'E_WORK_JOB_FAILED'
  constructor(key: string, jobId: string, outcome: string, why: string) {
    super(
      `The job of work item "${key}" is ${outcome}: ${why}`,
      `See the job: pawl job show ${jobId}. When the cause is removed, resume the run.`,
      { key, jobId, outcome, why },
    )
  }
}

/** A work item runs as a job, but runs were opened without Pawl. */
export class QueueMissing extends PawlError {
  readonly code = 'E_QUEUE_MISSING'
  constructor(key: string) {
    super(
      `Work item "${key}" runs as a job, but these runs have no Pawl to enqueue it`,
      'Pass it: openRuns({ pawl, … }).',
      { key },
    )
  }
}

/** The run has no artifact of this name. */
export class ArtifactUnknown extends PawlError {
  readonly code = 'E_ARTIFACT_UNKNOWN'
  constructor(runId: string, name: string) {
    super(
      `Run ${runId} has no artifact "${name}"`,
      `Write it first, or check its name: pawl run show ${runId}.`,
      { runId, name },
    )
  }
}

/** A file or folder cannot be an input of the run. */
export class InputFileInvalid extends PawlError {
  readonly code = 'E_INPUT_FILE_INVALID'
  constructor(path: string, why: string) {
    super(
      `${path} cannot be an input of the run: ${why}`,
      'Use another path, or change the file or folder at this path.',
      { path, why },
    )
  }
}

/** A telemetry server rejected events. They are kept and sent again. */
export class TelemetryRefused extends PawlError {
  readonly code = 'E_TELEMETRY_REFUSED'
  constructor(server: string, status: number) {
    super(
      `The telemetry server ${server} answered with status ${status}`,
      'Check its address and token. The events are kept and sent again.',
      { server, status },
    )
  }
}
