/** `pawl fm001`: the duplicate retry of FM_001, without the commit boundary and with it. */
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

/** The command that shows what the fence is for. */
export const commands: readonly CommandSpec[] = [
  {
    name: 'fm001',
    summary: 'Play the duplicate retry: two effects without the fence, one with it',
    details:
      'A worker is silent for longer than its lease, a second one commits, and the first one ' +
      'wakes up and commits as well. Played twice in a temporary folder: on a copy of this ' +
      'package whose commit boundary is removed, and on the package as it is. ' +
      'Effects are counted by SQL.',
    options: [],
    examples: [
      ['pawl fm001', 'the story, and both counts'],
      ['pawl fm001 --json', 'the counts alone'],
    ],
    run: fm001,
  },
]
