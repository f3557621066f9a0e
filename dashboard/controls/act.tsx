/** The dialog of an operator's command on a queue, a limit or a schedule. */
import { useEffect, useState } from 'preact/hooks'
import { shellWord } from '../../src/doctor/shell-word.ts'
import { Action, type ActionProps, openDialog, type Signed } from '../ui/dialogs.tsx'

interface Control extends Omit<ActionProps, 'cli'> {
  /** The command: `pawl queue pause`. */
  readonly command: string
  /** The name of the queue, limit or schedule. */
  readonly object: string
  /** Options of the command, without the signature. */
  readonly options?: () => readonly string[]
  /** Called after the command. */
  readonly then: () => void
}

/** Opens the dialog. */
export function askControl(control: Control): void {
  const { command, object, options = () => [], then, act, ...rest } = control
  openDialog(
    <Action
      {...rest}
      cli={(signed) => lineOf(command, object, [...options(), ...wordsOf(signed)])}
      act={async (signed) => {
        const said = await act(signed)
        then()
        return said
      }}
    />,
  )
}

function wordsOf({ reason, operator }: Signed): string[] {
  const why = reason === '…' ? '--reason …' : `--reason=${shellWord(reason)}`
  return operator === undefined ? [why] : [why, `--operator=${shellWord(operator)}`]
}

/** A command line. A name that begins like an option is written last, after `--`. */
export function lineOf(command: string, name: string, options: readonly string[] = []): string {
  const word = shellWord(name)
  const words = name.startsWith('-') ? [...options, '--', word] : [word, ...options]
  return [command, ...words].join(' ')
}

const DELAY_MS = 250

/** What the command would do with the present fields: asked again after each change of `of`. */
export function DryRun({ of, ask }: { of: string; ask: () => Promise<string | undefined> }) {
  const [says, setSays] = useState<string>()
  useEffect(() => {
    let isOver = false
    const show = (text: string | undefined) => {
      if (!isOver) setSays(text)
    }
    const timer = setTimeout(() => {
      ask().then(show, (error: unknown) => show(error instanceof Error ? error.message : ''))
    }, DELAY_MS)
    return () => {
      isOver = true
      clearTimeout(timer)
    }
  }, [of])
  return (
    <div class="notice" role="status">
      {says ?? 'Looking at what would change…'}
    </div>
  )
}
