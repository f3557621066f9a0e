/** `pawl fm001`: runs FM_001 without and with the commit boundary. */
import { runFm001 } from '../demo/fm-001.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import type { Call, CommandSpec } from '../spec.ts'

async function fm001({ output }: Call): Promise<ExitCode> {
  const { steps, fenceOff, fenceOn } = await runFm001()
  if (output.json) {
    output.record({ fenceOff, fenceOn })
  } else {
    for (const step of steps) output.say(step)
    output.line(`fence off: ${fenceOff.effects} effects`)
    output.line(`fence on:  ${fenceOn.effects} effect`)
  }
  return fenceOff.effects === 2 && fenceOn.effects === 1 ? EXIT.ok : EXIT.failure
}

export const commands: readonly CommandSpec[] = [
  {
    name: 'fm001',
    summary: 'Run the duplicate retry FM_001: two effects without the fence, one with it',
    details:
      'A worker does not renew its lease, a second worker commits the job, and then the first ' +
      'one commits as well. Runs twice in a temporary folder: with a copy of this package ' +
      'without its commit boundary, and with the package itself. Effects are counted by SQL.',
    options: [],
    examples: [
      ['pawl fm001', 'the steps and both counts'],
      ['pawl fm001 --json', 'only the counts'],
    ],
    run: fm001,
  },
]
