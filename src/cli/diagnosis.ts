/** Prints reports of the doctor for people. */
import type { Report } from '../doctor/doctor.ts'
import type { Finding, Severity } from '../doctor/finding.ts'
import type { Repair } from '../doctor/repairs.ts'
import type { Output, Style } from './output.ts'
import { shortened, visible } from './visible.ts'

const STYLES: Readonly<Record<Severity, Style>> = {
  error: 'red',
  warning: 'yellow',
  notice: 'dim',
}
const SHOWN_MAX = 50
const VALUE_MAX = 60

export function printFindings(output: Output, { findings, ...report }: Report): void {
  for (const finding of findings.slice(0, SHOWN_MAX)) printFinding(output, finding)
  const more =
    report.errors + report.warnings + report.notices - Math.min(findings.length, SHOWN_MAX)
  if (more > 0) output.line(`… and ${more} more; --json prints up to 1000`)
}

function printFinding(output: Output, finding: Finding): void {
  const { severity, promise, check, subject, what, remedy, advice } = finding
  const head = output.style(STYLES[severity], severity.padEnd(7))
  output.line(`${head} ${promise.padEnd(3)} ${visible(subject)}: ${visible(what)}`)
  const todo = [remedy && `repair: ${remedy}`, advice && visible(advice)].filter(Boolean).join('; ')
  const rest = todo === '' ? '' : `  ${todo}`
  output.line(`            ${output.style('dim', `${check}${rest}`)}`)
}

export function printRepairs(output: Output, report: Report, tense: 'planned' | 'done'): void {
  if (report.repairCount === 0) {
    output.line(tense === 'planned' ? 'Nothing has to be repaired.' : 'Nothing was repaired.')
    return
  }
  output.line()
  output.line(output.style('bold', tense === 'planned' ? 'A repair would' : 'Repaired'))
  for (const repair of report.repairs.slice(0, SHOWN_MAX)) printRepair(output, repair)
  const more = report.repairCount - Math.min(report.repairs.length, SHOWN_MAX)
  if (more > 0) output.line(`  … and ${more} more`)
  output.line()
}

function printRepair(
  output: Output,
  { subject, remedy, why, changes, factSeq, aside }: Repair,
): void {
  output.line(`  ${visible(subject)}: ${remedy}`)
  output.line(`    ${output.style('dim', visible(why))}`)
  for (const { column, from, to } of changes) {
    output.line(`    ${column}: ${shownValue(from)} → ${shownValue(to)}`)
  }
  if (aside > 0) output.line(`    ${aside} rows are set aside`)
  if (factSeq !== undefined) output.line(`    recorded as fact ${factSeq}`)
}

function shownValue(value: unknown): string {
  return visible(shortened(typeof value === 'string' ? value : JSON.stringify(value), VALUE_MAX))
}

export function printVerdict(output: Output, report: Report): void {
  const { ok, complete, jobs, errors, warnings, notices } = report
  const scope = complete ? `all ${jobs} jobs` : `the first ${jobs} jobs (--full checks all)`
  const counts = [
    [errors, 'errors'],
    [warnings, 'warnings'],
    [notices, 'notices'],
  ]
    .filter(([count]) => count !== 0)
    .map(([count, name]) => `${count} ${name}`)
  const verdict = ok ? output.style('green', 'healthy') : output.style('red', 'findings')
  const list = counts.length === 0 ? '' : `: ${counts.join(', ')}`
  output.line(`${verdict}${list}; checked ${scope}`)
}
