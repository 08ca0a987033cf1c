/* Workers, who wakes them, and how they end: src/sched/idle_set.hpp, parker.hpp, and what pool_turn.cpp does with
   them. Here every step is seen by all at once, so fences are none of this model's: they are the relacy model's
   (parking_model.cpp). What that one can't say is said here: what must happen at last, if every thread that can go on
   does.

   CLOSES: the pool is ended by somebody when all was posted, else it goes on for ever. LIMITED: at first one worker may
   be awake, and one of those asleep watches: it wakes after a while, and has all of them be awake if there are jobs. Each
   WITHOUT_ leaves out one step of the protocol, for a run that must fail. */
#define WORKERS 2
#define POSTS 2     /* from outside */
#define INSIDE 1    /* by jobs */

#define awake 0
#define asleep 1
#define woken 2

byte jobs, more = INSIDE;
byte posted;                   /* from outside */
byte begun;                    /* jobs; two at most are counted */
byte parked, searching;        /* how many are inside, how many search */
bool inside[WORKERS];
byte word[WORKERS];            /* what each sleeps on */
bool moved[WORKERS];           /* somebody has come or gone since this one came */
bool closing, closed, ended;
byte ends;
byte gone;                     /* workers that have seen the end */
#ifdef LIMITED
byte most = 1;                 /* how many may be awake */
bool watched, watches[WORKERS];
#define enough (WORKERS - parked >= most)
#define calls (parked > 0 && searching == 0 && !(watched && enough))
#define too_many (WORKERS - parked > most)
#else
#define enough false
#define calls (parked > 0 && searching == 0)
#define too_many false
#endif

/* Into the set and out of it: under its lock, so in one step each. */
inline all_see_a_move() { moved[0] = true; moved[1] = true }
inline take_out(w) {
#ifdef LIMITED
  if
  :: watches[w] -> watches[w] = false; watched = false
  :: else
  fi;
#endif
  inside[w] = false; parked--; searching++; all_see_a_move()
}
inline take_any(w) {
  if
  :: inside[0] -> w = 0
  :: inside[1] -> w = 1
  fi;
  take_out(w)
}

/* idle_set::pick, and the wake-up */
inline call(w) {
  w = WORKERS;
  if
  :: calls ->
    atomic {
      if
      :: calls && !closed -> take_any(w)
      :: else
      fi
    }
  :: else
  fi;
  if
  :: w < WORKERS -> word[w] = woken
  :: else
  fi;
  w = 0
}

/* idle_set::pick_any, and the wake-up */
inline call_any(w) {
  w = WORKERS;
  atomic {
    if
    :: parked > 0 -> take_any(w)
    :: else
    fi
  };
  if
  :: w < WORKERS -> word[w] = woken
  :: else
  fi;
  w = 0
}

proctype worker(byte me) {
  bool searches, last, got, beyond;
  byte w;
next_job:
  atomic {
    searches = (2 * searching < WORKERS - parked) && !too_many;
    if
    :: searches -> searching++
    :: else
    fi
  };
look:
  got = false;
  if
  :: searches && !too_many ->
    atomic {
      if
      :: jobs > 0 -> jobs--; got = true
      :: else
      fi
    }
  :: else
  fi;
  if
  :: got ->
    atomic { searching--; last = calls; got = false };
#ifndef WITHOUT_NEXT
    if
    :: last && jobs > 0 -> call(w)
    :: else
    fi;
#endif
    atomic { last = false; searches = false };
    /* the job: the first one waits until another worker has begun with one; and it may post another one */
    if
    :: begun < 2 -> begun++
    :: else
    fi;
    begun == 2;
    if
    :: atomic { more > 0 -> more--; jobs++ }; call(w)
    :: skip
    fi;
    goto next_job
  :: else
  fi;

  word[me] = awake;
  atomic {
    inside[me] = true;
    parked++;
    all_see_a_move();
    moved[me] = false;
    if
    :: searches -> searching--
    :: else
    fi;
#ifdef LIMITED
    if
    :: parked < WORKERS && !watched -> watched = true; watches[me] = true
    :: else
    fi;
    beyond = enough;
#endif
    last = (parked == WORKERS)
  };
  if
  :: ended -> goto over
  :: else
  fi;
#ifndef WITHOUT_LOOK
  if
  :: jobs > 0 && !beyond -> goto leave
  :: else
  fi;
#endif
  if
  :: closing && last ->
    atomic {
      if
#ifndef WITHOUT_MOVES
      :: !closed && !moved[me] -> closed = true; got = true
#else
      :: !closed -> closed = true; got = true
#endif
      :: else
      fi
    };
    if
    :: got ->
      assert(jobs == 0);
      atomic { got = false; ended = true; ends++ };
#ifndef WITHOUT_CALLS
      do
      :: parked > 0 -> call_any(w)
      :: else -> break
      od;
#endif
      goto over
    :: else
    fi
  :: else
  fi;
  /* futex_parker::commit */
  atomic {
    if
    :: word[me] == awake -> word[me] = asleep
    :: else
    fi
  };
end_asleep:
#if defined(LIMITED) && !defined(WITHOUT_TIME)
  if
  :: word[me] != asleep
  :: atomic { watches[me] && jobs > 0 -> most = WORKERS }
  fi;
#else
  word[me] != asleep;
#endif
leave:
  atomic {
    last = false; beyond = false;
    if
    :: inside[me] -> take_out(me)
    :: else
    fi
  };
  if
  :: ended -> goto over
  :: else
  fi;
  searches = true;
  goto look;
over:
  gone++
}

proctype poster() {
  byte w;
  do
  :: posted < POSTS -> atomic { posted++; jobs++ }; call(w)
  :: else -> break
  od;
#ifdef CLOSES
  closing = true;
  call_any(w)
#endif
}

init {
  atomic {
    byte i;
    for (i : 0 .. WORKERS - 1) { run worker(i) }
    run poster()
  }
}
