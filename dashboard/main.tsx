import { render } from 'preact'
import { startLive } from './api/live.ts'
import { startSession } from './api/session.ts'
import { App } from './app.tsx'
import { startNumbers } from './numbers.ts'
import { startRouter } from './router.ts'
import { startTheme } from './theme.ts'
import { startKeys } from './ui/keys.ts'

startTheme()
startRouter()
startKeys()
startSession()
startLive()
startNumbers()
render(<App />, document.getElementById('app') as HTMLElement)
