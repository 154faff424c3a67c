/* Chunks of work that any thread of a team claims; see _team.pyx. */
#ifndef DTREES_TEAM_H
#define DTREES_TEAM_H

#include <stdint.h>

#ifdef _WIN32
#include <windows.h>
static inline void give_way(void) { SwitchToThread(); }
static inline void doze(void) { Sleep(0); }
#else
#include <sched.h>
#include <time.h>
static inline void give_way(void) { sched_yield(); }
static inline void doze(void) {
    struct timespec time = {0, 50000};
    nanosleep(&time, 0);
}
#endif

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#else
#define PAUSE()
#endif

#define SPINS 4096   /* some 40 microseconds */
#define YIELDS 4160

typedef void (*Chunk)(void *job, int64_t number);

/* ticket : number of the job << 40 | its chunks << 20 | the next chunk that nobody claimed */
typedef struct {
    uint64_t ticket;
    int64_t done;
    int64_t closed;
    Chunk work;
    void *job;
} Team;

#define TICKET_FIELD 20
#define TICKET_MASK ((1u << TICKET_FIELD) - 1)

/* Claim the next chunk; its number, or -1. */
static inline int64_t claim_chunk(Team *team) {
    uint64_t ticket = __atomic_load_n(&team->ticket, __ATOMIC_ACQUIRE);
    while ((ticket & TICKET_MASK) < ((ticket >> TICKET_FIELD) & TICKET_MASK)) {
        if (__atomic_compare_exchange_n(&team->ticket, &ticket, ticket + 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return (int64_t)(ticket & TICKET_MASK);
    }
    return -1;
}

static inline void do_chunk(Team *team, int64_t number) {
    team->work(team->job, number);
    __atomic_add_fetch(&team->done, 1, __ATOMIC_RELEASE);
}

/* The leader: post a job of at most 2**20 - 1 chunks, do what nobody else claims, wait for what
   others claimed. */
static inline void lead(Team *team, Chunk work, void *job, int64_t n_chunks) {
    uint64_t number;
    int64_t chunk;
    if (n_chunks == 1) {
        work(job, 0);
        return;
    }
    number = (__atomic_load_n(&team->ticket, __ATOMIC_RELAXED) >> (2 * TICKET_FIELD)) + 1;
    team->work = work;
    team->job = job;
    __atomic_store_n(&team->done, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&team->ticket,
                     number << (2 * TICKET_FIELD) | (uint64_t)n_chunks << TICKET_FIELD,
                     __ATOMIC_RELEASE);
    while ((chunk = claim_chunk(team)) >= 0)
        do_chunk(team, chunk);
    for (int64_t spins = 0; __atomic_load_n(&team->done, __ATOMIC_ACQUIRE) < n_chunks; spins++) {
        if (spins < SPINS)
            PAUSE();
        else
            give_way();
    }
}

/* A helper: claim chunks until the team is closed, waiting ever more patiently. */
static inline void help(Team *team) {
    int64_t spins = 0;
    while (!__atomic_load_n(&team->closed, __ATOMIC_ACQUIRE)) {
        int64_t chunk = claim_chunk(team);
        if (chunk >= 0) {
            do_chunk(team, chunk);
            spins = 0;
        } else if (spins++ < SPINS) {
            PAUSE();
        } else if (spins < YIELDS) {
            give_way();
        } else {
            doze();
        }
    }
}

static inline void close_team(Team *team) { __atomic_store_n(&team->closed, 1, __ATOMIC_RELEASE); }

#endif
