/*
 * One Sandbox resource, its controller and its provider: the protocol of create, bind, adopt, delete
 * and sweep, checked over every interleaving by spin (protocol_test.sh). protocol.md explains it.
 *
 * Worlds (-D):    STALLED  a controller that lost its lease may still send the POST it was about to send
 *                 WIPED    somebody wipes the status once; the attempt annotation stays
 *                 RESTORED the store goes back once to before the intent (a backup; a lost state folder)
 * Properties:     the assertions below, and the LTL formulas at the end.
 * Mistakes (-D):  NO_SETTLE, NO_INTENT_PRECONDITION, NO_BIND_PRECONDITION, NO_PROOF, UNSETTLED_PROOF,
 *                 INTENT_AFTER_POST, STALE_LEASE, SWEEP_READS_FIRST, SWEEP_KILLS_UNTRIED, UNTRIED_UNSETTLED.
 *                 Each must be found (protocol_test.sh).
 */

#ifndef POSTS
#define POSTS 2      /* creates that may be sent, over all lives of the controller */
#endif
#ifdef RESTORED
#define FAILOVERS 0  /* The restoration is one. */
#else
#define FAILOVERS 1  /* crashes, or leases lost */
#endif
#define SLOTS (POSTS + 1)  /* 0 stands for none */

/* ---- The store: what a crash keeps. ---- */
bool gone = false;       /* the object is no more */
bool deleting = false;   /* a person asked for deletion */
bool finalizer = false;
byte attempt = 0;        /* the nonce on record; 0: never tried */
byte bound = 0;          /* status.sandboxID; 0: empty */

/* ---- The provider. The n-th POST makes box n, or nothing. ---- */
mtype = { Unsent, Pending, Live, Dead, Refused };
mtype box[SLOTS] = Unsent;
byte nonce_of[SLOTS];
bool visible[SLOTS];     /* GET and list show it; lags behind Live within settle */
byte sent = 0;           /* POSTs so far */
bool may_lie = true;     /* one DELETE answers 204 and does nothing */

/* ---- Who leads, and what only the properties look at. ---- */
byte leader = 1;
byte failovers = 0;
bool dead[FAILOVERS + 3];
byte nonces = 0;             /* made so far */
bool recorded[SLOTS + 4];    /* this nonce was in the store at some time, with the finalizer */
bool was_bound[SLOTS];
bool disturbed = false;      /* a POST was sent by one that had lost its lease, or the store went back */

#define LIVE(n) (box[n] == Live)
#define BUSY(n) (box[n] == Live || box[n] == Pending)
#define EXISTS (!gone)
/* The n-th POST has had its time: it had its effect, and that shows; or it never will. */
#define SETTLED(n) (box[n] != Pending && (box[n] != Live || visible[n]))
#define SEEN(n) (box[n] == Live && visible[n])

#if POSTS == 2
#define ANY(P) (P(1) || P(2))
#define ALL(P) (P(1) && P(2))
#define live_boxes (LIVE(1) + LIVE(2))
#define WAITED(m) ((m < 1 || SETTLED(1)) && (m < 2 || SETTLED(2)))
#define FIRST_SEEN (SEEN(1) -> 1 : (SEEN(2) -> 2 : 0))
#define SEEN_WITH(n) (SEEN(1) && nonce_of[1] == n -> 1 : (SEEN(2) && nonce_of[2] == n -> 2 : 0))
#else
#define ANY(P) (P(1) || P(2) || P(3))
#define ALL(P) (P(1) && P(2) && P(3))
#define live_boxes (LIVE(1) + LIVE(2) + LIVE(3))
#define WAITED(m) ((m < 1 || SETTLED(1)) && (m < 2 || SETTLED(2)) && (m < 3 || SETTLED(3)))
#define FIRST_SEEN (SEEN(1) -> 1 : (SEEN(2) -> 2 : (SEEN(3) -> 3 : 0)))
#define SEEN_WITH(n) (SEEN(1) && nonce_of[1] == n -> 1 : (SEEN(2) && nonce_of[2] == n -> 2 : \
                     (SEEN(3) && nonce_of[3] == n -> 3 : 0)))
#endif

/* DELETE by id. One that was ever bound dies by its resource's deletion only. */
inline kill(n) {
  atomic {
    assert(!was_bound[n] || deleting || gone);
    if
    :: box[n] == Live -> box[n] = Dead; visible[n] = false
    :: box[n] == Live && may_lie -> may_lie = false
    :: box[n] != Live -> skip
    fi
  }
}

/* The one write that may give a resource its box; `done` tells whether the store took it. */
inline bind(n, done) {
  atomic {
    if
#ifdef NO_BIND_PRECONDITION
    :: EXISTS ->
#else
    :: EXISTS && attempt == nonce_of[n] && (bound == 0 || bound == n) ->
#endif
       assert(bound == 0 || bound == n || !LIVE(bound));   /* never two live ones bound */
       assert(LIVE(n) || deleting);                        /* never a dead one */
       bound = n; was_bound[n] = true; done = true
    :: else -> done = false
    fi
  }
}

#ifdef UNTRIED_UNSETTLED
#define UNTRIED_IS_ENOUGH(a) (a == 0)
#else
#define UNTRIED_IS_ENOUGH(a) false
#endif

proctype Controller(byte me) {
  byte a, b, n, found;   /* what it read, made and saw */
  bool d, done;
  byte mark = sent;      /* POSTs that a settle has to wait for: all sent before we began */
  bool settled = false;  /* settle has passed since we began or our last send ended */
  bool seen_bound;       /* GET showed the bound one: it is past the lag */

  {
    skip;
again:
    skip;
    /* Read, then look at the lease: what was read was true while we led. */
    d_step {
      a = attempt; b = bound; d = deleting; n = 0; found = 0;
      seen_bound = (b != 0 && visible[b]);
#ifdef STALE_LEASE
      done = gone
#else
      done = (gone || leader != me)
#endif
    };
    if
    :: done -> goto retired
    :: !done && d -> done = false; goto removal
    :: !done && !d && b == 0 -> skip
    :: !done && !d && b != 0 ->   /* Bound: steady until something changes. */
end_steady:
       (bound != b || deleting || leader != me);
       goto again
    fi;

    /* Unbound: is there one already? An early look may find; only one after settle proves absence. */
    atomic {
      if
#ifdef NO_SETTLE
      :: settled = true
#endif
      :: settled || FIRST_SEEN != 0 -> skip
      :: UNTRIED_IS_ENOUGH(a) -> skip
      :: !settled && WAITED(mark) -> settled = true
      :: deleting != d || attempt != a || bound != b || leader != me -> goto again
      fi;
      found = (a == 0 -> FIRST_SEEN : SEEN_WITH(a))
    };
    if
    :: found != 0 && a == 0 ->  /* Adopt: its nonce goes on record, the next pass binds it. */
       atomic {
         if
         :: EXISTS && attempt == a && bound == b && deleting == d ->
            attempt = nonce_of[found]; finalizer = true
         :: else
         fi
       };
       goto again
    :: found != 0 && a != 0 ->
       bind(found, done);
       goto again
    :: found == 0 && (settled || UNTRIED_IS_ENOUGH(a)) -> skip
    :: found == 0 && !(settled || UNTRIED_IS_ENOUGH(a)) -> goto again
    fi;

    /* Intent: finalizer and a new nonce in one write, if the object is as we read it. */
    if
    :: sent >= POSTS || nonces >= SLOTS + 2 -> goto end_exhausted
    :: else
    fi;
    d_step { nonces++; n = nonces };
#ifndef INTENT_AFTER_POST
    atomic {
      if
#ifdef NO_INTENT_PRECONDITION
      :: EXISTS ->
#else
      :: EXISTS && attempt == a && bound == b && deleting == d ->
#endif
         attempt = n; finalizer = true; recorded[n] = true; done = true
      :: else -> done = false
      fi
    };
    if
    :: !done -> goto again
    :: else
    fi;
#endif

send:
    atomic {
      if
#ifdef STALLED
      :: sent < POSTS ->
#else
      :: leader == me && sent < POSTS ->  /* The lease is looked at just before a send. */
#endif
         assert(recorded[n]);                                   /* no POST before its intent */
         disturbed = disturbed || leader != me;
         assert(disturbed || !ANY(BUSY));                       /* no second one beside the first */
         sent++; box[sent] = Pending; nonce_of[sent] = n; found = sent
      :: else -> found = 0
      fi
    };
    if
    :: found == 0 -> goto again
    :: else
    fi;
    if
    :: box[found] == Live || box[found] == Dead ->  /* 201, as late as it likes. */
#ifdef INTENT_AFTER_POST
       attempt = n; recorded[n] = true; finalizer = true;
#endif
       bind(found, done);
       if
       :: done -> skip
       :: else ->  /* Refused: an uncached GET decides whether what we made is nobody's. */
          d_step { done = (gone || attempt != n || (bound != 0 && bound != found)) };
          if
          :: done -> kill(found)
          :: else
          fi
       fi
    :: box[found] == Refused ->  /* Definite: written down; the next try has the same nonce. */
       atomic {
         if
         :: EXISTS && attempt == n && bound == 0 && !deleting -> done = true
         :: else -> done = false
         fi
       };
       if
       :: done -> goto send
       :: else
       fi
    :: skip   /* No answer, a broken one, or one that tells nothing. */
    fi;
    mark = sent; settled = false;
    goto again;

removal:
    if
    :: b != 0 -> kill(b)
    :: b == 0 -> skip
    fi;
#ifndef NO_PROOF
    /* Proof: nothing of our UID in GET and list, when whatever we sent would show. */
    if
#ifdef UNSETTLED_PROOF
    :: b != 0 -> skip
#endif
    :: b != 0 && seen_bound -> skip   /* It was past the lag before we killed it. */
    :: settled -> skip
    :: !settled && WAITED(mark) -> settled = true
    :: leader != me -> goto again
    fi;
    d_step { found = FIRST_SEEN };
    if
    :: found != 0 -> kill(found); goto again
    :: else
    fi;
#endif
    atomic {
      if
      :: EXISTS && attempt == a && bound == b ->
         assert(disturbed || !ANY(BUSY));                       /* deletion done: none is live */
         gone = true
      :: else
      fi
    };
    goto again;

end_exhausted:
    if
    :: deleting || leader != me || bound != b || attempt != a -> goto again
    :: ANY(SEEN) -> goto again
    fi
  } unless { dead[me] };

retired:
  skip;
  d_step { a = 0; b = 0; n = 0; found = 0; d = false; done = false; mark = 0; settled = false;
           seen_bound = false }
}

#define PROVIDE(n) \
  :: atomic { box[n] == Pending -> box[n] = Live } \
  :: atomic { box[n] == Pending -> box[n] = Refused } \
  :: atomic { box[n] == Live && !visible[n] -> visible[n] = true }

/* Takes effect late, shows late. (When and whether it answers: see the controller, after send.) */
active proctype Provider() {
end:
  do
  PROVIDE(1)
  PROVIDE(2)
#if POSTS > 2
  PROVIDE(3)
#endif
  od
}

/* Lists, then asks for the owner past every cache, then kills: three steps, anything in between. No
   grace: it is a courtesy to slow answers, the protocol must not need it. */
active proctype Sweep() {
  byte n;
  bool owned;
end:
  do
  :: atomic {
       if
#ifdef SWEEP_READS_FIRST
       :: n = 1
       :: n = 2
#else
       :: SEEN(1) -> n = 1
       :: SEEN(2) -> n = 2
#if POSTS > 2
       :: SEEN(3) -> n = 3
#endif
#endif
       fi
     };
     d_step {
       if
       :: gone -> owned = false
       :: !gone && bound != 0 -> owned = (bound == n)
       :: !gone && bound == 0 && attempt != 0 -> owned = (nonce_of[n] == attempt)
#ifdef SWEEP_KILLS_UNTRIED
       :: !gone && bound == 0 && attempt == 0 -> owned = false
#else
       :: !gone && bound == 0 && attempt == 0 -> owned = true  /* It will be adopted. */
#endif
       fi
     };
     if
     :: owned -> skip
#ifdef SWEEP_READS_FIRST
     :: !owned && !SEEN(n) -> skip
     :: !owned && SEEN(n) -> kill(n)
#else
     :: !owned -> kill(n)
#endif
     fi;
     d_step { n = 0; owned = false }
  od
}

/* The leader loses its lease, and lives on to end what it was doing. A crash is the schedule in which
   it never takes its next step, so safety needs no more; the LTL formulas, which are about what
   happens in the end, need real deaths (CRASHES). */
active proctype Failover() {
end:
  do
  :: atomic {
       failovers < FAILOVERS && !gone ->
#ifdef CRASHES
       if
       :: dead[leader] = true
       :: skip
       fi;
#endif
       failovers++; leader++;
       run Controller(leader)
     }
#ifdef CRASHES
  :: atomic { leader > 1 && !dead[1] -> dead[1] = true }
#endif
  od
}

active proctype Person() {
end:
  if
  :: atomic {
       deleting = true;
       if
       :: !finalizer -> gone = true
       :: else
       fi
     }
#ifdef WIPED
  :: atomic { bound != 0 -> bound = 0 };
     atomic {
       deleting = true;
       if
       :: !finalizer -> gone = true
       :: else
       fi
     }
#endif
#ifdef RESTORED
  :: atomic {  /* Whoever restores a store stops and starts what uses it. */
       attempt != 0 && !gone ->
       bound = 0; attempt = 0; finalizer = false;
       dead[1] = true; failovers = FAILOVERS; leader = 2;
       run Controller(2)
     }
#endif
  fi
}

init { run Controller(1) }

/* A disturbance is always mended: in the end one box at most, and none once the object is gone. */
ltl one_in_the_end { <> [] (live_boxes <= 1) }
ltl none_after_deletion { <> [] (!gone || live_boxes == 0) }
