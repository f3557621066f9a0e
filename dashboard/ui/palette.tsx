/** The command palette, the list of keys, and the keys of the whole page. */
import { useId, useLayoutEffect, useState } from 'preact/hooks'
import { paused, setPaused } from '../api/live.ts'
import { NAVIGATION, type PageSpec } from '../pages/index.ts'
import { go, hrefOf, jobHref } from '../router.ts'
import { nextTheme, setTheme } from '../theme.ts'
import { closeDialog, Dialog, openDialog } from './dialogs.tsx'
import { onKey } from './keys.ts'
import { Name } from './parts.tsx'

interface Command {
  readonly title: string
  readonly hint: string
  readonly run: () => void
}

const ID = /^[0-9a-f]{8}-[0-9a-f-]{4,}$/i

function commandsFor(text: string): Command[] {
  const wanted = text.trim()
  const pages = NAVIGATION.map((page: PageSpec): Command => {
    return { title: page.title, hint: keyOf(page), run: () => go(hrefOf(page.path)) }
  })
  const fixed: Command[] = [
    ...pages,
    {
      title: paused.value ? 'Resume updates' : 'Pause updates',
      hint: 'p',
      run: () => setPaused(!paused.value),
    },
    { title: 'Change the theme', hint: 't', run: () => setTheme(nextTheme()) },
    { title: 'List of keys', hint: '?', run: () => openDialog(<Keys />) },
  ]
  const found = fixed.filter(({ title }) => title.toLowerCase().includes(wanted.toLowerCase()))
  if (wanted === '') return found
  const job = { title: `Open job ${wanted}`, hint: 'Job', run: () => go(jobHref(wanted)) }
  const filters = (['type', 'queue', 'tag', 'key', 'error'] as const).map((name): Command => {
    const run = () => go(hrefOf('/jobs', { [name]: wanted }))
    return { title: `Jobs with ${name} ${wanted}`, hint: 'Jobs', run }
  })
  return ID.test(wanted) ? [job, ...found] : [...found, ...filters, job]
}

function keyOf({ key }: PageSpec): string {
  return key === undefined ? '' : `g ${key}`
}

export function Palette() {
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const list = useId()
  const commands = commandsFor(text)
  const chosen = commands[Math.min(at, commands.length - 1)]
  const run = (command: Command | undefined) => {
    closeDialog()
    command?.run()
  }
  const press = (event: KeyboardEvent) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (by !== undefined) {
      event.preventDefault()
      setAt(Math.max(0, Math.min(commands.length - 1, at + by)))
    } else if (event.key === 'Enter') {
      event.preventDefault()
      run(chosen)
    }
  }
  return (
    <Dialog label="Search or run a command" close={closeDialog} kind="palette">
      <input
        value={text}
        aria-label="Search or run a command"
        placeholder="A page, a job id, a type, a queue, an error…"
        role="combobox"
        aria-expanded="true"
        aria-controls={list}
        aria-activedescendant={chosen && `${list}-${commands.indexOf(chosen)}`}
        onInput={(event) => {
          setText(event.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={press}
      />
      <div class="list" id={list} role="listbox" aria-label="Commands">
        {commands.map((command, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the field has the keyboard
          // biome-ignore lint/a11y/useFocusableInteractive: the field keeps the focus
          <div
            key={command.title}
            id={`${list}-${index}`}
            role="option"
            aria-selected={command === chosen}
            onClick={() => run(command)}
          >
            <Name text={command.title} />
            <span class="muted small nowrap">{command.hint}</span>
          </div>
        ))}
      </div>
    </Dialog>
  )
}

const KEYS: readonly (readonly [string, string])[] = [
  ['/', 'Search or run a command'],
  ['f', 'Filter the list'],
  ['j  k', 'Next and previous row'],
  ['Enter', 'Open the row'],
  ['x', 'Choose the row'],
  ['p', 'Pause and resume updates'],
  ['t', 'Change the theme'],
  ['← →', 'On a job or run: step through its history'],
  ['Home End', 'Its first and its last fact'],
  ['.', 'Back to now'],
  ['?', 'This list'],
]

function Keys() {
  const pages = NAVIGATION.filter(({ key }) => key !== undefined)
  const rows = [...KEYS, ...pages.map((page) => [keyOf(page), page.title] as const)]
  return (
    <Dialog label="Keys" close={closeDialog}>
      <div class="body">
        <h1>Keys</h1>
        <dl class="facts">
          {rows.map(([keys, says]) => (
            <>
              <dt key={keys}>{keys.split(' ').map((key) => key && <kbd key={key}>{key}</kbd>)}</dt>
              <dd>{says}</dd>
            </>
          ))}
        </dl>
        <div class="buttons">
          <button type="button" class="button" onClick={closeDialog}>
            Close
          </button>
        </div>
      </div>
    </Dialog>
  )
}

/** The keys that work on every page. */
export function usePageKeys(): void {
  useLayoutEffect(() => {
    const stops = [
      onKey('/', () => openDialog(<Palette />)),
      onKey('?', () => openDialog(<Keys />)),
      onKey('p', () => setPaused(!paused.value)),
      onKey('t', () => setTheme(nextTheme())),
      ...NAVIGATION.filter(({ key }) => key !== undefined).map((page) =>
        onKey(keyOf(page), () => go(hrefOf(page.path))),
      ),
    ]
    return () => {
      for (const stop of stops) stop()
    }
  }, [])
}
