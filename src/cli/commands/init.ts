/** `pawl init`: a configuration, a first job, a worker and scripts for a project. */
import { resolve } from 'node:path'
import { askLine } from '../confirm.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { detect, type Language, type PackageManager, type Project } from '../init/detect.ts'
import { endingOf, RECIPES } from '../init/templates.ts'
import { type Change, planOf } from '../init/write.ts'
import { type Call, type CommandSpec, hasFlag, textOf } from '../spec.ts'
import { visible } from '../visible.ts'

const RUN: Readonly<Record<PackageManager, string>> = {
  npm: 'npx pawl',
  pnpm: 'pnpm exec pawl',
  yarn: 'yarn pawl',
  bun: 'bunx pawl',
}
const INSTALL: Readonly<Record<PackageManager, string>> = {
  npm: 'npm install',
  pnpm: 'pnpm add',
  yarn: 'yarn add',
  bun: 'bun add',
}

async function init(call: Call): Promise<ExitCode> {
  const { output } = call
  const folder = resolve(call.args[0] ?? '.')
  const project = detect(folder, process.env, textOf(call, 'language') as Language | undefined)
  const { changes, write } = planOf(project)
  const dryRun = hasFlag(call, 'dryRun')
  if (!dryRun && !(await isAgreed(call, project, changes))) {
    output.say('Nothing was written.')
    return call.interrupted.aborted ? EXIT.interrupted : EXIT.ok
  }
  if (!dryRun) write()
  if (output.json) {
    const { language, packageManager, framework, missing } = project
    const found = { folder, language, packageManager, framework, missing }
    output.record({ ...found, dryRun, changes, next: nextOf(project) })
  } else print(call, project, changes, dryRun)
  return EXIT.ok
}

/** Asks one question on a terminal, and none elsewhere. */
async function isAgreed(
  call: Call,
  { folder, language, packageManager }: Project,
  changes: readonly Change[],
): Promise<boolean> {
  const { stdin, output } = call
  const isPerson = stdin.isTTY === true && output.isTerminal && !output.json
  if (hasFlag(call, 'yes') || !isPerson) return true
  output.line(`${visible(folder)}: ${language}, ${packageManager}. This would write:`)
  for (const { what, name, action } of changes) {
    if (action === 'create') output.line(`  ${what === 'script' ? 'script ' : ''}${visible(name)}`)
  }
  const typed = await askLine(call, 'Write them? [Y/n]')
  return typed !== undefined && /^(y|yes|)$/i.test(typed.trim())
}

function print(
  { output }: Call,
  project: Project,
  changes: readonly Change[],
  dryRun: boolean,
): void {
  const [created, skipped] = dryRun ? ['would create', 'would skip'] : ['created', 'skipped']
  for (const { what, name, action, why } of changes) {
    const noun = what === 'script' ? 'script ' : ''
    const verb = action === 'create' ? created : output.style('yellow', skipped)
    output.line(`${verb} ${noun}${visible(name)}${why === undefined ? '' : `: ${visible(why)}`}`)
  }
  const config = changes.find(({ name }) => name.startsWith('pawl.config.'))
  if (config?.action === 'skip') {
    output.line(`If it is not listed yet, add './jobs/hello.${endingOf(project)}' to its "jobs".`)
  }
  output.line()
  output.line('Next:')
  for (const line of nextOf(project)) output.line(`  ${line}`)
  output.line()
  output.line('Retention is off: ended jobs are kept without limit. To switch it on, set')
  output.line("  retention: { succeeded: '30d' } in the configuration.")
  if (project.framework === undefined) return
  const [name, lines] = RECIPES[project.framework]
  output.line()
  output.line(`To serve the HTTP API from ${name}, which this command does not change:`)
  for (const line of lines) output.line(`  ${line}`)
}

function nextOf({ packageManager: manager, missing }: Project): string[] {
  const run = RUN[manager]
  return [
    ...(missing.length > 0 ? [`${INSTALL[manager]} ${missing.join(' ')}`] : []),
    `${run} dev`,
    `${run} job enqueue hello '{"name":"Ann"}' --wait 30s`,
  ]
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'init',
    summary: 'Write a configuration, a first job, a worker and scripts',
    details:
      'Detects TypeScript or JavaScript, the package manager and the framework. Never changes a ' +
      'file that exists, except that missing scripts are added to package.json; prints what it ' +
      'skipped. Asks once on a terminal, and nothing with --yes or without a terminal.',
    args: [{ flags: '[folder]', says: 'the folder of the project; the current one if absent' }],
    options: [
      { flags: '--yes', says: 'do not ask' },
      { flags: '--dry-run', says: 'print what would be written, and write nothing' },
      {
        flags: '--language <language>',
        says: 'instead of the detected one',
        choices: ['typescript', 'javascript'],
      },
    ],
    examples: [
      ['pawl init', 'in the current folder'],
      ['pawl init --yes', 'without a question'],
      ['pawl init my-app --language typescript --dry-run', 'what it would write'],
    ],
    readsNoConfig: true,
    run: init,
  },
]
