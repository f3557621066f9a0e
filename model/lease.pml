/*
 * Lease, heartbeat, recovery, commit, settlement, delivery and cancellation, as a model that spin
 * searches in full: every order in which three workers, time and a client can meet at two jobs.
 *
 * What stands for what. One `d_step` is one verb of a store, that is one transaction.
 *
 *   fence        `findStale` in src/core/job/fence.ts: attempt and claim, and a lease that runs
 *   lease_out    `decideClaim`, with start, for nothing is fetched in advance (decision 0007)
 *   commit, fail `decideCommit` and `decideFail` in src/core/job/decide-attempt.ts, and the
 *                repeated commit that `guard` in src/core/job/decide.ts answers as the same
 *   take_back    `decideExpire` and `crash`, and src/stores/<store>/recover.ts. The model reads and
 *                writes in two transactions, as promise P7 words it; the stores need only one.
 *   cancel       `decideCancel`. A store asks the holder first; the model cuts it off at once.
 *   take_effect, deliver, report   src/stores/<store>/outbox.ts
 *   lifecycle    `leased`, that of R1
 *
 * Time is abstract: a lease may run out at any moment, whatever its holder does, so
 * clocks, leases and pauses of any length are all there. A worker that dies forgets what it held
 * and starts again; a claim whose reply is lost looks just like that. A reply to a commit or a
 * failure may be lost, and the worker asks again with the same fence. Such faults are bounded, as
 * are failures and crashes of a job by its budgets. Hence every path ends, and where it ends the
 * judge looks at what came out.
 *
 * Left out: delays and due times, give-backs, steps, time-outs, priorities, operators, parked
 * effects, and the databases: that a transaction is atomic and durable is believed here, and shown
 * elsewhere (test/crash).
 *
 * Ghosts, which no rule may read, hold what is true: `grant` says which job a worker may write,
 * `effects` counts what commits did.
 *
 * Variants, each with one rule missing, each found by another assertion:
 *   UNFENCED                 a commit asks for no fence: FM_001 of R1
 *   ATTEMPT_NOT_IN_FENCE     the fence names the process alone; workers A and B are slots of one
 *   RECOVER_WITHOUT_RECHECK  recovery does not look again before it takes a job back
 *   EFFECT_NOT_TAKEN_BACK    an effect stays with whoever took it
 */
#ifndef WORKERS
#define WORKERS 3
#endif
#ifndef JOBS
#define JOBS 2
#endif
#define FAILURES_MAX 1
#define CRASHES_MAX 1
#ifndef FAULTS
#define FAULTS 2 /* deaths of workers, lost replies, deliveries that outlast their lease */
#endif
#define LAST_ATTEMPT 9
#define NOBODY 255
#define NOTHING 255

mtype:state = { PENDING, RUNNING, SUCCEEDED, FAILED };
mtype:status = { NONE, IN_PROGRESS, COMMITTED, DONE, ABORTED };
mtype:lease = { NO_LEASE, RUNS, EXPIRED };
mtype:effect = { UNDECLARED, OPEN, TAKEN, DELIVERED };
mtype:wish = { COMMIT, COMMIT_WITH_EFFECT, FAIL, FAIL_FOR_GOOD };

typedef Job {
  mtype:state state;
  mtype:status status;
  mtype:lease lease;
  mtype:effect effect;
  byte attempt;
  byte claim; /* the worker whose claim it is: with the attempt it is as unique as an id */
  byte deliverer;
  byte failures;
  byte crashes;
};

Job job[2];
byte faults;

/*
 * Workers are alike and so are jobs, so it is enough to look at histories in which they begin in
 * the order of their numbers.
 */
byte begun;
#define may_begin(w) (w <= begun)
#define is_next(j) (j == 0 || job[0].attempt > 0)

/* Ghosts. */
byte grant[3] = NOTHING;
byte holding[3] = NOTHING; /* what a worker believes to hold */
byte delivering[3] = NOTHING;
byte effects[2];

#define letter(w) ('A' + w)
#define has_ended(j) (job[j].state == SUCCEEDED || job[j].state == FAILED)
#define is_committed(j) (job[j].status == COMMITTED || job[j].status == DONE)

#ifdef ATTEMPT_NOT_IN_FENCE
#define process_of(w) (w == 0 -> 1 : w)
#define is_named(j, w, a) (job[j].claim != NOBODY && process_of(job[j].claim) == process_of(w))
#else
#define is_named(j, w, a) (job[j].attempt == a && job[j].claim == w)
#endif
#define is_live(j) (job[j].status == IN_PROGRESS && job[j].lease != EXPIRED)
#define fence(j, w, a) (is_named(j, w, a) && is_live(j))

/* P6: whatever moves a job comes through here, and a job that has ended is not moved. */
inline move(j, to) {
  assert(job[j].state != SUCCEEDED && job[j].state != FAILED);
  job[j].state = to;
  if
  :: to == SUCCEEDED || to == FAILED ->
    /* Nothing depends on these any more, so histories that differ in nothing else become one. */
    job[j].attempt = LAST_ATTEMPT;
    job[j].failures = 0;
    job[j].crashes = 0
  :: else
  fi
}

/* P5: a new attempt has a higher number than every one before, within the budgets. */
inline open_attempt(j) {
  job[j].attempt++;
  assert(job[j].attempt <= FAILURES_MAX + CRASHES_MAX + 2)
}

/* Nobody may write any more. */
inline withdraw(j) {
  if
  :: job[j].claim != NOBODY && grant[job[j].claim] == j -> grant[job[j].claim] = NOTHING
  :: else
  fi
}

inline abort_attempt(j) {
  withdraw(j);
  job[j].status = ABORTED;
  job[j].claim = NOBODY;
  job[j].lease = NO_LEASE
}

inline begin() {
  if
  :: me == begun -> begun++
  :: else
  fi
}

inline lease_out(j) {
  open_attempt(j);
  move(j, RUNNING);
  job[j].status = IN_PROGRESS;
  job[j].claim = me;
  job[j].lease = RUNS;
  mine = j;
  attempt = job[j].attempt;
  grant[me] = j;
  holding[me] = j;
  printf("STORY worker %c leases job %d as attempt %d\n", letter(me), j, attempt)
}

/* P3: at most one attempt commits, and its effect happens once. */
inline have_effect() {
  effects[mine]++;
  printf("STORY worker %c commits job %d as attempt %d: effect number %d\n",
    letter(me), mine, attempt, effects[mine]);
  assert(effects[mine] <= 1)
}

inline apply_commit() {
  have_effect();
  job[mine].lease = NO_LEASE;
  withdraw(mine);
  if
  :: wish == COMMIT -> move(mine, SUCCEEDED); job[mine].status = DONE
  :: else -> job[mine].status = COMMITTED; job[mine].effect = OPEN
  fi
}

inline apply_failure() {
  printf("STORY worker %c fails job %d as attempt %d\n", letter(me), mine, attempt);
  abort_attempt(mine);
  if
  :: wish == FAIL && job[mine].failures < FAILURES_MAX ->
    job[mine].failures++;
    move(mine, PENDING)
  :: else -> move(mine, FAILED)
  fi
}

/* What a worker wants to write, under its fence. Late, or a second time, it changes nothing. */
inline settle() {
  if
#ifdef UNFENCED
  :: (wish == COMMIT || wish == COMMIT_WITH_EFFECT) && !fence(mine, me, attempt) ->
    /* Such an engine finds the job by its id, and commits whoever has it by now. */
    if
    :: has_ended(mine) || is_committed(mine) -> have_effect()
    :: else -> apply_commit()
    fi
#endif
  :: fence(mine, me, attempt) ->
    /* P4: whoever is let through does hold the job. */
    assert(grant[me] == mine);
    if
    :: wish == COMMIT || wish == COMMIT_WITH_EFFECT -> apply_commit()
    :: else -> apply_failure()
    fi
  :: else -> printf("STORY worker %c is late for job %d, or repeats itself\n", letter(me), mine)
  fi
}

inline look_at(j) {
  mine = j;
  attempt = job[j].attempt;
  printf("STORY worker %c sees that the lease of job %d has expired\n", letter(me), j)
}

/* An expired lease: a crash of the attempt, until the budget is spent. */
inline take_back() {
  if
#ifdef RECOVER_WITHOUT_RECHECK
  :: true ->
#else
  :: job[mine].attempt == attempt && job[mine].status == IN_PROGRESS &&
     job[mine].lease == EXPIRED ->
#endif
    printf("STORY worker %c takes job %d back from attempt %d\n", letter(me), mine, attempt);
    /* P7: only a lease that has run out is taken, and that very one. */
    assert(job[mine].lease == EXPIRED && job[mine].attempt == attempt);
    abort_attempt(mine);
    if
    :: job[mine].crashes < CRASHES_MAX -> job[mine].crashes++; move(mine, PENDING)
    :: else -> move(mine, FAILED)
    fi
#ifndef RECOVER_WITHOUT_RECHECK
  :: else
#endif
  fi
}

inline forget() {
  mine = NOTHING;
  attempt = 0;
  wish = COMMIT;
  holding[me] = NOTHING;
  delivering[me] = NOTHING
}

inline die() {
  faults < FAULTS;
  faults++;
  printf("STORY worker %c dies\n", letter(me));
  forget()
}

inline take_effect(j) {
  job[j].effect = TAKEN;
  job[j].deliverer = me;
  mine = j;
  delivering[me] = j;
  printf("STORY worker %c takes the effect of job %d\n", letter(me), j)
}

/* P10: the last effect finishes the job, in the same transaction, and commits nothing again. */
inline report() {
  if
  :: job[mine].effect == TAKEN && job[mine].deliverer == me ->
    assert(effects[mine] == 1);
    job[mine].effect = DELIVERED;
    job[mine].deliverer = NOBODY;
    job[mine].status = DONE;
    move(mine, SUCCEEDED);
    printf("STORY worker %c reports the delivery: job %d is done\n", letter(me), mine)
  :: else
  fi
}

proctype Worker(byte me) {
  byte mine = NOTHING;
  byte attempt;
  mtype:wish wish = COMMIT;

idle:
end_idle:
  if
  :: d_step { may_begin(me) && job[0].state == PENDING -> begin(); lease_out(0) } goto holds
  :: d_step { may_begin(me) && job[1].state == PENDING && is_next(1) -> begin(); lease_out(1) }
    goto holds
  :: d_step { may_begin(me) && job[0].lease == EXPIRED -> begin(); look_at(0) } goto recovers
  :: d_step { may_begin(me) && job[1].lease == EXPIRED -> begin(); look_at(1) } goto recovers
  :: d_step { may_begin(me) && job[0].effect == OPEN -> begin(); take_effect(0) } goto delivers
  :: d_step { may_begin(me) && job[1].effect == OPEN -> begin(); take_effect(1) } goto delivers
  fi;

holds:
  if
  /* A heartbeat: where the lease runs it changes nothing here, else it tells the holder. */
  :: d_step { !fence(mine, me, attempt) -> forget() } goto idle
  :: d_step { wish = COMMIT; settle(); forget() } goto idle
  :: d_step { wish = COMMIT_WITH_EFFECT; settle(); forget() } goto idle
  :: d_step { wish = FAIL; settle(); forget() } goto idle
  :: d_step { wish = FAIL_FOR_GOOD; settle(); forget() } goto idle
  :: d_step { faults < FAULTS -> faults++; wish = COMMIT; settle() } goto unsure
  :: d_step { faults < FAULTS -> faults++; wish = COMMIT_WITH_EFFECT; settle() } goto unsure
  :: d_step { faults < FAULTS -> faults++; wish = FAIL; settle() } goto unsure
  :: d_step { die() } goto idle
  fi;

unsure: /* The reply was lost: it asks again. */
  if
  :: d_step { true -> settle(); forget() } goto idle
  :: d_step { die() } goto idle
  fi;

recovers:
  if
  :: d_step { take_back(); forget() } goto idle
  :: d_step { die() } goto idle
  fi;

delivers:
  if
  :: d_step { report(); forget() } goto idle
  :: d_step { die() } goto idle
  fi
}

inline expire(j) {
  job[j].lease = EXPIRED;
  withdraw(j);
  printf("STORY the lease of job %d expires\n", j)
}

/* Time passes for everybody, and most of all for those who pause. */
proctype Clock() {
end:
  do
  :: d_step { job[0].lease == RUNS -> expire(0) }
  :: d_step { job[1].lease == RUNS -> expire(1) }
#ifndef EFFECT_NOT_TAKEN_BACK
  :: d_step { job[0].effect == TAKEN && delivering[job[0].deliverer] != 0 ->
      job[0].effect = OPEN; job[0].deliverer = NOBODY }
  :: d_step { job[1].effect == TAKEN && delivering[job[1].deliverer] != 1 ->
      job[1].effect = OPEN; job[1].deliverer = NOBODY }
  :: d_step { job[0].effect == TAKEN && faults < FAULTS ->
      faults++; job[0].effect = OPEN; job[0].deliverer = NOBODY }
  :: d_step { job[1].effect == TAKEN && faults < FAULTS ->
      faults++; job[1].effect = OPEN; job[1].deliverer = NOBODY }
#endif
  od
}

inline cancel(j) {
  printf("STORY a client cancels job %d\n", j);
  if
  :: has_ended(j) || is_committed(j) -> skip /* It is refused. */
  :: job[j].state == PENDING -> open_attempt(j); move(j, RUNNING); abort_attempt(j); move(j, FAILED)
  :: else -> abort_attempt(j); move(j, FAILED)
  fi
}

/* Cancels one of the jobs at some moment, or none. */
proctype Client() {
end:
  if
#ifndef NO_CANCEL
  :: d_step { true -> cancel(0) }
  :: d_step { is_next(1) && JOBS > 1 -> cancel(1) }
#endif
  :: true
  fi
}

/* P15: where nothing moves any more, all is well. */
proctype Judge() {
end:
  timeout ->
  d_step {
    byte j;
    for (j : 0 .. JOBS - 1) {
      printf("STORY in the end job %d has state %e and %d effects\n", j, job[j].state, effects[j]);
      assert(!(job[j].status == COMMITTED)); /* P10 */
      assert(job[j].lease == NO_LEASE); /* P7 */
      assert(job[j].state == SUCCEEDED || job[j].state == FAILED);
      assert(effects[j] == (job[j].state == SUCCEEDED))
    }
  }
}

#ifdef LTL
/* The same promises as formulas, for one job, with fair workers: whoever can go on does. */
#define is_orphaned (job[0].status == IN_PROGRESS && holding[job[0].claim] != 0)
ltl p5 { [] ((job[0].attempt == 1 -> [] (job[0].attempt >= 1)) &&
             (job[0].attempt == 2 -> [] (job[0].attempt >= 2)) &&
             (job[0].attempt == 3 -> [] (job[0].attempt >= 3))) }
ltl p6 { [] ((job[0].state == SUCCEEDED -> [] (job[0].state == SUCCEEDED)) &&
             (job[0].state == FAILED -> [] (job[0].state == FAILED))) }
ltl p7 { [] (is_orphaned -> <> !is_orphaned) }
ltl p10 { [] (job[0].status == COMMITTED -> <> (job[0].status == DONE)) }
ltl p15 { <> (job[0].state == SUCCEEDED || job[0].state == FAILED) }
/* These two do not hold: what P7 and P10 speak of does happen. */
ltl no_orphan { [] !is_orphaned }
ltl no_delivery { [] (job[0].status != COMMITTED) }
#endif

init {
  atomic {
    byte i;
    for (i : 0 .. 1) {
      job[i].state = (i < JOBS -> PENDING : FAILED);
      job[i].status = NONE;
      job[i].lease = NO_LEASE;
      job[i].effect = UNDECLARED;
      job[i].claim = NOBODY;
      job[i].deliverer = NOBODY
    }
    for (i : 1 .. WORKERS) { run Worker(i - 1) }
    run Clock();
    run Client();
    run Judge()
  }
}
