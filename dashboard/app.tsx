/** The frame around all pages: navigation, search, who is here, and how fresh the view is. */
import { useEffect, useRef, useState } from 'preact/hooks'
import { setToken, token } from './api/client.ts'
import { connection, paused, setPaused } from './api/live.ts'
import { caller, now, refusal } from './api/session.ts'
import { behindSince } from './api/view.ts'
import { span } from './format.ts'
import { badges } from './numbers.ts'
import { NAVIGATION, PAGES } from './pages/index.ts'
import { hrefOf, matchPath, place } from './router.ts'
import { nextTheme, setTheme, theme } from './theme.ts'
import { dialog, openDialog, Toasts } from './ui/dialogs.tsx'
import { Palette, usePageKeys } from './ui/palette.tsx'
import { Empty } from './ui/parts.tsx'
import { State } from './ui/state.tsx'

export function App() {
  usePageKeys()
  if (caller.value === undefined) return <Gate />
  return (
    <div class="app">
      <a class="skip" href="#main">
        Skip to the content
      </a>
      <Side />
      <main id="main" tabIndex={-1}>
        <Page />
      </main>
      {dialog.value}
      <Toasts />
    </div>
  )
}

function Page() {
  const { path } = place.value
  for (const { path: pattern, Page: Found, title } of PAGES) {
    const params = matchPath(pattern, path)
    if (params === undefined) continue
    document.title = `${params.id ?? params.name ?? title} · Pawl`
    return <Found key={path} {...params} />
  }
  document.title = 'Not found · Pawl'
  return (
    <Empty title="There is no such page">
      The address is {path}. <a href={hrefOf('/')}>Go to the overview</a>.
    </Empty>
  )
}

function Mark() {
  return (
    <svg
      width="24"
      height="24"
      viewBox="0 0 24 24"
      fill="none"
      stroke-width="1.8"
      stroke-linejoin="round"
      stroke-linecap="round"
      aria-hidden="true"
    >
      <path d="M3 20.5l3-5.5 3 5.5 3-5.5 3 5.5 3-5.5 3 5.5" />
      <circle cx="6" cy="4.5" r="1.9" />
      <path d="M7.3 6l8.2 8-4-.3" />
    </svg>
  )
}

function Side() {
  const { path } = place.value
  const nav = useRef<HTMLElement>(null)
  // On a phone the pages are a row that scrolls: the present one must be visible.
  useEffect(() => {
    const here = nav.current?.querySelector<HTMLElement>('[aria-current]')
    if (here) nav.current?.scrollTo({ left: here.offsetLeft - nav.current.offsetLeft - 40 })
  }, [path])
  return (
    <header class="side">
      <a class="brand" href={hrefOf('/')} aria-label="Pawl, overview">
        <Mark />
        <span>Pawl</span>
      </a>
      <button type="button" class="search" onClick={() => openDialog(<Palette />)}>
        <span>Search</span> <kbd>/</kbd>
      </button>
      <nav aria-label="Pages" ref={nav}>
        {NAVIGATION.map(({ path: to, title }) => {
          const isHere = to === '/' ? path === '/' : path === to || path.startsWith(`${to}/`)
          const badge = badges.value[to]
          return (
            <a key={to} href={hrefOf(to)} aria-current={isHere ? 'page' : undefined}>
              {title}
              {badge && <b class={badge.isHot ? 'hot' : undefined}>{badge.text}</b>}
            </a>
          )
        })}
      </nav>
      <Foot />
    </header>
  )
}

const LIVE = {
  live: ['succeeded', 'live'],
  connecting: ['waiting', 'connecting'],
  paused: ['cancelled', 'paused'],
  lost: ['failed', 'no connection'],
} as const

function Foot() {
  const [tone, word] = LIVE[connection.value]
  const isPaused = paused.value
  return (
    <footer>
      <div class="who">
        {caller.value?.name} · {caller.value?.roles.join(', ')}
        {token.value !== '' && (
          <>
            {' '}
            <button type="button" class="copy" onClick={() => setToken('')}>
              Sign out
            </button>
          </>
        )}
      </div>
      <div class="live">
        <State tone={tone} word={word} />
        <span class="long">{connection.value === 'live' && <Behind />}</span>
      </div>
      <div class="who row">
        <button type="button" class="copy" onClick={() => setPaused(!isPaused)}>
          {isPaused ? 'Resume updates' : 'Pause updates'}
        </button>
        <button type="button" class="copy" onClick={() => setTheme(nextTheme())}>
          {theme.value === 'dark' ? 'Light' : 'Dark'}
        </button>
      </div>
    </footer>
  )
}

/** How long the oldest news wait that the page does not show yet. */
function Behind() {
  void now.value
  const since = behindSince.value
  const ms = since === undefined ? 0 : Math.max(0, Date.now() - since)
  return <>{ms < 100 ? ', up to date' : `, ${span(ms)} behind`}</>
}

/** The caller is not known: asks for a token, or says that the server is gone. */
function Gate() {
  const [text, setText] = useState('')
  const error = refusal.value
  useEffect(() => {
    document.title = 'Pawl'
  }, [])
  if (error === undefined) return <main aria-busy="true" />
  const needsToken = error.status === 401 || error.status === 403
  return (
    <main class="gate" id="main">
      <h1>
        <Mark /> Pawl
      </h1>
      <p>
        {error.message}. {error.hint}
      </p>
      {needsToken && (
        <form
          class="row"
          onSubmit={(event) => {
            event.preventDefault()
            setToken(text.trim())
          }}
        >
          <input
            class="field"
            type="password"
            aria-label="Token"
            placeholder="pawl_…"
            autocomplete="current-password"
            value={text}
            onInput={(event) => setText(event.currentTarget.value)}
          />
          <button type="submit" class="button primary" disabled={text.trim() === ''}>
            Sign in
          </button>
        </form>
      )}
      <Empty
        title={needsToken ? 'Where do I get a token?' : 'What can I do?'}
        line={helpFor(needsToken)}
      >
        {needsToken
          ? 'Somebody with access to the store creates one. It is kept in this tab alone.'
          : 'Start the server again, then load this page again.'}
      </Empty>
    </main>
  )
}

function helpFor(needsToken: boolean): string {
  return needsToken ? 'pawl token create ada --role read' : 'pawl serve'
}
