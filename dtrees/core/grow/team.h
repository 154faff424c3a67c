/* Jobs whose chunks any thread of a team claims; see _team.pyx. */
#ifndef DTREES_TEAM_H
#define DTREES_TEAM_H

#include <stdint.h>

#ifdef _WIN32
#include <windows.h>
typedef SRWLOCK Lock;
typedef CONDITION_VARIABLE Bell;
static inline void begin_waits(Lock *lock, Bell *bell) {
    InitializeSRWLock(lock);
    InitializeConditionVariable(bell);
}
static inline void end_waits(Lock *lock, Bell *bell) { (void)lock, (void)bell; }
static inline void hold(Lock *lock) { AcquireSRWLockExclusive(lock); }
static inline void let_go(Lock *lock) { ReleaseSRWLockExclusive(lock); }
static inline void wait_for_bell(Bell *bell, Lock *lock) {
    SleepConditionVariableSRW(bell, lock, INFINITE, 0);
}
static inline void ring(Bell *bell) { WakeAllConditionVariable(bell); }
static inline void give_way(void) { SwitchToThread(); }
#else
#include <pthread.h>
#include <sched.h>
typedef pthread_mutex_t Lock;
typedef pthread_cond_t Bell;
static inline void begin_waits(Lock *lock, Bell *bell) {
    pthread_mutex_init(lock, 0);
    pthread_cond_init(bell, 0);
}
static inline void end_waits(Lock *lock, Bell *bell) {
    pthread_cond_destroy(bell);
    pthread_mutex_destroy(lock);
}
static inline void hold(Lock *lock) { pthread_mutex_lock(lock); }
static inline void let_go(Lock *lock) { pthread_mutex_unlock(lock); }
static inline void wait_for_bell(Bell *bell, Lock *lock) { pthread_cond_wait(bell, lock); }
static inline void ring(Bell *bell) { pthread_cond_broadcast(bell); }
static inline void give_way(void) { sched_yield(); }
#endif

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE()
#endif

#define SPINS 4096   /* some 40 microseconds */
#define YIELDS 4160
#define MOST_JOBS 64 /* of a team at a time; who leads one more does it alone */

typedef void (*Chunk)(void *job, int64_t number);

/* ticket : number of the job << 41 | is_long << 40 | its chunks << 20 | the next chunk that nobody
   claimed */
typedef struct {
    uint64_t ticket;
    int64_t done;
    int64_t is_taken;
    Chunk work;
    void *job;
    char own_line[24];
} Job;

typedef struct {
    Job jobs[MOST_JOBS];
    int64_t n_used;             /* jobs that have ever been taken are the first ones */
    int64_t n_waiting;          /* tasks of Python */
    int64_t closed;
    int64_t n_asleep;           /* threads, */
    int64_t n_leaders_asleep;   /* and those of them who wait for the end of their job */
    Lock lock;
    Bell changed;
} Jobs;

#define TICKET_FIELD 20
#define TICKET_MASK ((1u << TICKET_FIELD) - 1)
#define IS_LONG ((uint64_t)1 << (2 * TICKET_FIELD))
#define NUMBER_SHIFT (2 * TICKET_FIELD + 1)

static inline int64_t look(const int64_t *place) { return __atomic_load_n(place, __ATOMIC_SEQ_CST); }

static inline void begin_jobs(Jobs *jobs) { begin_waits(&jobs->lock, &jobs->changed); }

static inline void end_jobs(Jobs *jobs) { end_waits(&jobs->lock, &jobs->changed); }

/* Let all who sleep look again; after what they wait for was written. */
static inline void wake(Jobs *jobs, const int64_t *n_asleep) {
    if (look(n_asleep) > 0) {
        hold(&jobs->lock);
        ring(&jobs->changed);
        let_go(&jobs->lock);
    }
}

static inline int has_chunk(uint64_t ticket, int short_only) {
    return (ticket & TICKET_MASK) < ((ticket >> TICKET_FIELD) & TICKET_MASK)
           && !(short_only && ticket & IS_LONG);
}

/* Claim the next chunk of a job; its number, or -1. */
static inline int64_t claim_chunk(Job *job, int short_only) {
    uint64_t ticket = __atomic_load_n(&job->ticket, __ATOMIC_ACQUIRE);
    while (has_chunk(ticket, short_only)) {
        if (__atomic_compare_exchange_n(&job->ticket, &ticket, ticket + 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return (int64_t)(ticket & TICKET_MASK);
    }
    return -1;
}

static inline void do_chunk(Jobs *jobs, Job *job, int64_t number) {
    job->work(job->job, number);
    __atomic_add_fetch(&job->done, 1, __ATOMIC_SEQ_CST);
    wake(jobs, &jobs->n_leaders_asleep);
}

/* Do a chunk of any job; 0: there is none. */
static inline int do_any_chunk(Jobs *jobs, int short_only) {
    int64_t n_used = look(&jobs->n_used);
    for (int64_t i = 0; i < n_used; i++) {
        int64_t number = claim_chunk(&jobs->jobs[i], short_only);
        if (number >= 0) {
            do_chunk(jobs, &jobs->jobs[i], number);
            return 1;
        }
    }
    return 0;
}

static inline int has_any_chunk(Jobs *jobs, int short_only) {
    int64_t n_used = look(&jobs->n_used);
    for (int64_t i = 0; i < n_used; i++) {
        if (has_chunk(__atomic_load_n(&jobs->jobs[i].ticket, __ATOMIC_SEQ_CST), short_only))
            return 1;
    }
    return 0;
}

/* A place for one more job, or NULL. */
static inline Job *take_job(Jobs *jobs) {
    for (int64_t i = 0; i < MOST_JOBS; i++) {
        Job *job = &jobs->jobs[i];
        if (!__atomic_load_n(&job->is_taken, __ATOMIC_RELAXED)
            && !__atomic_exchange_n(&job->is_taken, 1, __ATOMIC_ACQUIRE)) {
            int64_t n_used = look(&jobs->n_used);
            while (n_used <= i && !__atomic_compare_exchange_n(&jobs->n_used, &n_used, i + 1, 0,
                                                               __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
                ;
            return job;
        }
    }
    return 0;
}

/* Sleep until the bell rings, unless what this thread waits for is there: the end of its `job`,
   which has so many chunks, or, without one, anything to do. */
static inline void sleep_for(Jobs *jobs, Job *job, int64_t n_chunks, int short_only) {
    int is_there;
    hold(&jobs->lock);
    __atomic_add_fetch(&jobs->n_asleep, 1, __ATOMIC_SEQ_CST);
    if (job)
        __atomic_add_fetch(&jobs->n_leaders_asleep, 1, __ATOMIC_SEQ_CST);
    is_there = job ? look(&job->done) >= n_chunks : look(&jobs->n_waiting) || look(&jobs->closed);
    if (!is_there && !((short_only || !job) && has_any_chunk(jobs, short_only)))
        wait_for_bell(&jobs->changed, &jobs->lock);
    if (job)
        __atomic_sub_fetch(&jobs->n_leaders_asleep, 1, __ATOMIC_SEQ_CST);
    __atomic_sub_fetch(&jobs->n_asleep, 1, __ATOMIC_SEQ_CST);
    let_go(&jobs->lock);
}

/* Wait ever more patiently: once more for each of `spins`, which are counted. */
static inline void bide(Jobs *jobs, Job *job, int64_t n_chunks, int short_only, int64_t *spins) {
    *spins += 1;
    if (*spins < SPINS) {
        PAUSE();
    } else if (*spins < YIELDS) {
        give_way();
    } else {
        sleep_for(jobs, job, n_chunks, short_only);
        *spins = 0;
    }
}

/* Lead a job: do what nobody else claims, wait for what others claimed. While chunks of a long job
   are done by others, do those of short jobs. If a ticket cannot count the chunks, the leader does
   all of them. */
static inline void lead(Jobs *jobs, Chunk work, void *job, int64_t n_chunks, int is_long) {
    Job *own = n_chunks > 1 && n_chunks <= TICKET_MASK ? take_job(jobs) : 0;
    uint64_t number;
    int64_t chunk, spins = 0;
    if (!own) {
        for (chunk = 0; chunk < n_chunks; chunk++)
            work(job, chunk);
        return;
    }
    number = (__atomic_load_n(&own->ticket, __ATOMIC_RELAXED) >> NUMBER_SHIFT) + 1;
    own->work = work;
    own->job = job;
    __atomic_store_n(&own->done, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&own->ticket,
                     number << NUMBER_SHIFT | (is_long ? IS_LONG : 0)
                         | (uint64_t)n_chunks << TICKET_FIELD,
                     __ATOMIC_SEQ_CST);
    wake(jobs, &jobs->n_asleep);
    while ((chunk = claim_chunk(own, 0)) >= 0)
        do_chunk(jobs, own, chunk);
    while (look(&own->done) < n_chunks) {
        if (is_long && do_any_chunk(jobs, 1))
            spins = 0;
        else
            bide(jobs, own, n_chunks, is_long, &spins);
    }
    __atomic_store_n(&own->is_taken, 0, __ATOMIC_RELEASE);
}

/* Do chunks until a task waits (1), or the team is closed (0). */
static inline int help_with_jobs(Jobs *jobs) {
    int64_t spins = 0;
    for (;;) {
        if (do_any_chunk(jobs, 0))
            spins = 0;
        else if (look(&jobs->n_waiting))
            return 1;
        else if (look(&jobs->closed))
            return 0;
        else
            bide(jobs, 0, 0, 0, &spins);
    }
}

static inline void count_tasks(Jobs *jobs, int64_t more) {
    __atomic_add_fetch(&jobs->n_waiting, more, __ATOMIC_SEQ_CST);
    wake(jobs, &jobs->n_asleep);
}

static inline void close_jobs(Jobs *jobs) {
    __atomic_store_n(&jobs->closed, 1, __ATOMIC_SEQ_CST);
    wake(jobs, &jobs->n_asleep);
}

static inline void open_jobs(Jobs *jobs) { __atomic_store_n(&jobs->closed, 0, __ATOMIC_SEQ_CST); }

#endif
