/** `pawl limit audit`: how many jobs ran under a limit, from the ledger. */
import { auditLimit, type LimitAudit } from '../../audit/limit-use.ts'
import { span } from '../../core/format.ts'
import { limitOf, parseGate } from '../../core/limits/keys.ts'
import { shortName } from '../../core/limits/short-names.ts'
import { stamp } from '../../environment/times.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { withPawl } from '../opening.ts'
import { type Call, type CommandSpec, textOf } from '../spec.ts'
import { readPast } from '../times.ts'
import { visible } from '../visible.ts'
import { assertDeclared, KEY_OPTION, NAME_ARGUMENT } from './limit.ts'

const SHOWN = 10

async function audit(call: Call): Promise<ExitCode> {
  const { output, interrupted: signal } = call
  const [name = ''] = call.args
  const key = textOf(call, 'key')
  const past = textOf(call, 'since')
  // Wrong options are reported before the store is opened.
  if (past !== undefined) readPast(past, 'since', call.environment.clock.now())
  return withPawl(call, async (pawl) => {
    await assertDeclared(pawl, name)
    const { store } = pawl
    const since = past === undefined ? undefined : readPast(past, 'since', store.now())
    const options = {
      signal,
      ...(key !== undefined && { key }),
      ...(since !== undefined && { since }),
    }
    const report = await auditLimit(store, name, options)
    if (output.json) output.record(report)
    else print(call, report)
    if (!report.complete) return EXIT.failure
    return report.violationCount === 0 ? EXIT.ok : EXIT.findings
  })
}

function print({ output }: Call, report: LimitAudit): void {
  const { claims, from, until, peak, violations, violationCount, complete } = report
  const what = `${shortName(report.limit)}${report.key === undefined ? '' : ` ${report.key}`}`
  const time = `${claims} claims in ${span(until - from)} since ${stamp(from)}`
  if (peak === undefined) output.line(visible(`${what}: no job ran; ${time}`))
  else {
    const said = violationCount === 0 ? 'never above the limit' : `${violationCount} times above it`
    const most = `at most ${peak.used} at once (${gateText(peak.gate)}${stamp(peak.at)})`
    output.line(visible(`${what}: ${said}; ${most}; ${time}`))
  }
  for (const { at, gate, jobId, used, max } of violations.slice(0, SHOWN)) {
    const where = gateText(gate)
    output.line(visible(`  ${where}${stamp(at)} job ${jobId} made it ${used} of ${max}`))
  }
  if (!complete) output.say('The ledger was not read to its end, or has facts that are unreadable.')
}

function gateText(gate: string): string {
  const { key } = parseGate(gate) ?? { limit: limitOf(gate) }
  return key === undefined ? '' : `${key}, `
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'limit audit',
    summary: 'Compare with the ledger: were ever more jobs run than the limit allowed?',
    details:
      'Reads every fact of the store once. The numbers in force are those of pawl limit ' +
      'history. Ends with 3 if a claim made more jobs run than were allowed then.',
    args: [NAME_ARGUMENT],
    options: [
      KEY_OPTION,
      { flags: '--since <time>', says: 'a date, or a duration before now; all if absent' },
    ],
    examples: [['pawl limit audit openai --since 30d', 'the last 30 days']],
    run: audit,
  },
]
