/** `pawl flow cancel|redrive`: commands of an operator on all jobs of a flow. */
import type { OperatorOptions } from '../../engine/operators/operators.ts'
import type { OperatorReport } from '../../engine/operators/report.ts'
import type { ExitCode } from '../exit-codes.ts'
import { loadJobFiles } from '../job-files.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, hasFlag } from '../spec.ts'
import { identityOf, OPERATOR_OPTIONS, report } from './job-act.ts'

const VERBS = ['cancel', 'redrive'] as const
type Verb = (typeof VERBS)[number]

async function actOn(call: Call, verb: Verb): Promise<ExitCode> {
  const identity = identityOf(call)
  const [id = ''] = call.args
  const jobs = call.options.jobs === undefined ? [] : await loadJobFiles(call.settings.jobs.value)
  return withPawl(
    call,
    async (pawl) => {
      const operator = pawl.operator(identity)
      const options: OperatorOptions = {
        dryRun: hasFlag(call, 'dryRun'),
        signal: call.interrupted,
        onProgress: (count) => call.output.progress(`${verb}: ${count} jobs`),
      }
      const result: OperatorReport =
        verb === 'cancel'
          ? await operator.cancelFlow(id, options)
          : await operator.redriveFlow(id, options)
      return report(call, verb, result)
    },
    { jobs },
  )
}

const ID = '0198a1b2-0000-7000-8000-000000000001'

const SAYS: Readonly<Record<Verb, Pick<CommandSpec, 'summary' | 'details'>>> = {
  cancel: {
    summary: 'Cancel all jobs of a flow that have not ended, and close an open batch',
    details: 'Running handlers are aborted. Children of cancelled jobs are cancelled as well.',
  },
  redrive: {
    summary: 'Redrive the failed and parked jobs of a flow; what waits for them then goes on',
    details:
      'Jobs that are parked because a dependency failed are not redriven themselves: they start ' +
      'when the dependency has succeeded.',
  },
}

export const commands: readonly CommandSpec[] = VERBS.map((verb) => ({
  name: `flow ${verb}`,
  ...SAYS[verb],
  args: [{ flags: '<id>', says: 'the id of the flow or batch' }],
  options: [
    ...OPERATOR_OPTIONS,
    { flags: '--dry-run', says: 'print what would change, and change nothing' },
    { flags: '--jobs <file>', says: 'a job file with its own lifecycles', repeats: true as const },
  ],
  examples: [
    [`pawl flow ${verb} ${ID} --reason "INC-7" --dry-run`, 'preview'],
    [`pawl flow ${verb} ${ID} --reason "INC-7"`, 'all jobs that it concerns'],
  ],
  run: (call) => actOn(call, verb),
}))
