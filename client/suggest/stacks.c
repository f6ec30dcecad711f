/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * libdwfl unwinds, by the tables in .eh_frame: it gets the registers and the piece of the stack
 * that were sampled, and the files that the process has mapped, also if others are at their paths
 * by now. Which function a place is in is asked as for a binding, so that it is found by the same
 * names.
 */

#include "suggest/stacks.h"

#include <elfutils/libdwfl.h>
#include <search.h>

#include "base/duration.h"
#include "elf/file.h"
#include "elf/function-exits.h"

#define PROCESSES_MAX 512
#define INNERMOST     4 /* frames among which that of a lock is */
#define LOOK_AGAIN_NS NSEC_PER_SEC

/* A file with functions; one path can have several in turn. */
typedef struct Module {
        char *name; /* in /proc/PID/maps */
        MappedIdentity identity;
        const char *path; /* as its processes see it, or saw it */
        ElfFile *elf;     /* NULL: it cannot be read */
        Elf *image;       /* the same, for libdwfl */
        FileFate fate;
        bool is_program;
} Module;

/* Where a process has it. */
typedef struct Loaded {
        uint64_t begin;
        const Module *module;
} Loaded;

typedef struct Process {
        Stacks *stacks;
        pid_t pid;
        Dwfl *dwfl;                /* NULL: its mappings cannot be read */
        uint64_t looked_ns;        /* when they were */
        const StackSample *sample; /* that is being unwound */
        Loaded *loaded;            /* of its files, those that were asked for */
        size_t n_loaded;
} Process;

/* A place in a file, and the function that it is in. */
typedef struct Place {
        const Module *module;
        uint64_t offset;
        uint32_t function;
} Place;

struct Stacks {
        Process processes[PROCESSES_MAX];
        size_t n_processes;
        Module **modules;
        size_t n_modules;
        SeenFunction *functions;
        size_t n_functions;
        void *places; /* a tree of Place */
};

int stacks_new(Stacks **ret) {
        *ret = calloc(1, sizeof(**ret));
        return *ret ? 0 : -ENOMEM;
}

static Module *module_free(Module *module) {
        if (!module)
                return NULL;
        (void) elf_end(module->image);
        elf_file_free(module->elf);
        free(module->name);
        free(module);
        return NULL;
}

DEFINE_CLEANUP(Module, module_free);

static void close_process(Process *process) {
        dwfl_end(process->dwfl);
        process->dwfl = NULL;
        free(process->loaded);
        process->loaded = NULL;
        process->n_loaded = 0;
}

Stacks *stacks_free(Stacks *stacks) {
        if (!stacks)
                return NULL;
        tdestroy(stacks->places, free);
        for (size_t i = 0; i < stacks->n_processes; i++)
                close_process(&stacks->processes[i]);
        for (size_t i = 0; i < stacks->n_modules; i++)
                module_free(stacks->modules[i]);
        for (size_t i = 0; i < stacks->n_functions; i++)
                free((void *) stacks->functions[i].name);
        free(stacks->functions);
        free(stacks->modules);
        free(stacks);
        return NULL;
}

const SeenFunction *stacks_get(const Stacks *stacks, uint32_t function) {
        return &stacks->functions[function];
}

int stacks_find(const Stacks *stacks, const char *path, uint64_t offset, uint32_t *ret) {
        for (size_t i = 0; i < stacks->n_functions; i++)
                if (stacks->functions[i].offset == offset &&
                    streq(stacks->functions[i].path, path) &&
                    (stacks->functions[i].fate == FILE_KEPT || stacks->functions[i].is_program)) {
                        *ret = (uint32_t) i;
                        return 0;
                }
        return -ENOENT;
}

static bool is_base_library(const char *path) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

        return strncmp(name, "libc.so", 7) == 0 || strncmp(name, "libc-", 5) == 0 ||
               strncmp(name, "ld-", 3) == 0 || strncmp(name, "libpthread", 10) == 0 ||
               strncmp(name, "ld-musl", 7) == 0 || *path != '/';
}

static bool is_listed(const Module *module) {
        return module->elf && module->fate == FILE_KEPT && !is_base_library(module->path);
}

/* It was replaced meanwhile, or two processes see different files there. */
static bool was_listed(const Stacks *stacks, size_t index) {
        for (size_t i = 0; i < index; i++)
                if (is_listed(stacks->modules[i]) &&
                    streq(stacks->modules[i]->path, stacks->modules[index]->path))
                        return true;
        return false;
}

const char *stacks_next_file(const Stacks *stacks, size_t *i) {
        while (*i < stacks->n_modules) {
                size_t index = (*i)++;

                if (is_listed(stacks->modules[index]) && !was_listed(stacks, index))
                        return stacks->modules[index]->path;
        }
        return NULL;
}

static const Module *find_module(const Stacks *stacks, const char *name,
                                 const MappedIdentity *identity) {
        for (size_t i = 0; i < stacks->n_modules; i++) {
                const Module *module = stacks->modules[i];

                if (mapped_identity_equal(&module->identity, identity) && streq(module->name, name))
                        return module;
        }
        return NULL;
}

/* Of the values, the name is copied, and elf is taken if there is no error. */
static int add_module(Stacks *stacks, const Module *values, const Module **ret) {
        _cleanup_(module_freep) Module *module = calloc(1, sizeof(*module));
        Module **modules;

        if (!module)
                return -ENOMEM;
        module->name = strdup(values->name);
        if (!module->name)
                return -ENOMEM;
        modules = reallocarray(stacks->modules, stacks->n_modules + 1, sizeof(*modules));
        if (!modules)
                return -ENOMEM;
        stacks->modules = modules;
        module->identity = values->identity;
        module->image = values->elf ? elf_begin(elf_file_fd(values->elf), ELF_C_READ, NULL) : NULL;
        module->elf = values->elf;
        module->path = module->elf ? elf_file_path(module->elf) : module->name;
        module->fate = values->fate;
        module->is_program = values->is_program;
        *ret = modules[stacks->n_modules++] = TAKE_PTR(module);
        return 0;
}

/* Returns 0, -ENOMEM, or a negative errno if it cannot be read. */
static int get_module(Stacks *stacks, const Mapping *mapping, const Module **ret) {
        _cleanup_(elf_file_freep) ElfFile *elf = NULL;
        Module module = { .name = mapping->name, .identity = mapping->identity };
        int r;

        *ret = find_module(stacks, mapping->name, &mapping->identity);
        if (*ret)
                return 0;
        r = mapping_open(mapping, &elf, &module.fate);
        if (r < 0)
                return r;
        module.elf = elf;
        module.is_program = mapping_is_program(mapping);
        r = add_module(stacks, &module, ret);
        if (r >= 0)
                elf = NULL;
        return r;
}

/* What is in no file, as the code that the kernel gives each process. */
static int get_nameless(Stacks *stacks, const char *name, const Module **ret) {
        const MappedIdentity none = {};

        *ret = find_module(stacks, name, &none);
        return *ret ? 0 : add_module(stacks, &(Module) { .name = (char *) name }, ret);
}

static const Module *find_loaded(const Process *process, uint64_t begin) {
        for (size_t i = 0; i < process->n_loaded; i++)
                if (process->loaded[i].begin == begin)
                        return process->loaded[i].module;
        return NULL;
}

static int load(Process *process, uint64_t begin, const Module **ret) {
        _cleanup_(mapping_done) Mapping mapping = {};
        Loaded *loaded;
        int r;

        r = mapping_find(process->pid, begin, &mapping);
        if (r >= 0)
                r = get_module(process->stacks, &mapping, ret);
        if (r < 0)
                return r;
        loaded = reallocarray(process->loaded, process->n_loaded + 1, sizeof(*loaded));
        if (!loaded)
                return -ENOMEM;
        process->loaded = loaded;
        loaded[process->n_loaded++] = (Loaded) { begin, *ret };
        return 0;
}

/*
 * What the process has mapped there, asked once for each of its files: another reference to what
 * was opened once. A service can have some hundred processes, and a file that was mapped could be
 * cut short.
 */
static int find_elf(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
                    char **ret_path, Elf **elf) {
        Process *process = *userdata;
        const Module *file;

        if (*name != '/')
                return dwfl_linux_proc_find_elf(module, userdata, name, base, ret_path, elf);
        if (load(process, base, &file) < 0)
                return -1;
        *elf = elf_begin(-1, ELF_C_READ, file->image);
        if (*elf)
                *ret_path = strdup(name);
        return -1;
}

/* Names come from .symtab as for bindings; what is unwound by is in the file. */
static int find_no_debug_file(Dwfl_Module *module, void **userdata, const char *name,
                              Dwarf_Addr base, const char *file, const char *link, GElf_Word crc,
                              char **ret_path) {
        return -1;
}

static int set_process(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
                       void *process) {
        *userdata = process;
        return DWARF_CB_OK;
}

/* There is one thread for libdwfl: that of the sample. */
static pid_t next_thread(Dwfl *dwfl, void *userdata, void **thread) {
        const Process *process = userdata;

        if (*thread)
                return 0;
        *thread = userdata;
        return process->sample->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *userdata, void **thread) {
        *thread = userdata;
        return true;
}

static bool read_memory(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *ret, void *userdata) {
        const StackSample *sample = ((const Process *) userdata)->sample;
        uint64_t sp = sample->registers[SAMPLE_SP];

        if (address < sp || address - sp > sample->stack_size ||
            sample->stack_size - (address - sp) < sizeof(*ret))
                return false;
        memcpy(ret, sample->stack + (address - sp), sizeof(*ret));
        return true;
}

/* An address in the code of a module, as an offset in its file. */
static bool to_offset(Dwfl_Module *module, Dwarf_Addr pc, uint64_t *ret) {
        GElf_Addr bias;
        GElf_Phdr phdr;
        Elf *elf;

        elf = dwfl_module_getelf(module, &bias);
        for (int i = 0; elf && gelf_getphdr(elf, i, &phdr); i++)
                if (phdr.p_type == PT_LOAD && (phdr.p_flags & PF_X) && pc - bias >= phdr.p_vaddr &&
                    pc - bias - phdr.p_vaddr < phdr.p_filesz) {
                        *ret = pc - bias - phdr.p_vaddr + phdr.p_offset;
                        return true;
                }
        return false;
}

static bool is_code(const Process *process, uint64_t address) {
        Dwfl_Module *module = dwfl_addrmodule(process->dwfl, address);

        return module && to_offset(module, address, &(uint64_t) { 0 });
}

/*
 * Of what sleeps, the frame pointer is not known. A function that has one keeps that of its caller,
 * which lies further up, and above it the address that it returns to: the first such pair is taken
 * for its frame. Where no function has one, nobody asks for it.
 */
static uint64_t find_frame(const Process *process) {
        const StackSample *sample = process->sample;
        uint64_t sp = sample->registers[SAMPLE_SP], end = sp + sample->stack_size, pair[2];

        for (uint64_t at = (sp + 7) & ~UINT64_C(7); at + sizeof(pair) <= end; at += sizeof(*pair)) {
                memcpy(pair, sample->stack + (at - sp), sizeof(pair));
                if (pair[0] > at && pair[0] < end && pair[0] % sizeof(*pair) == 0 &&
                    is_code(process, pair[1]))
                        return at;
        }
        return 0;
}

static bool set_registers(Dwfl_Thread *thread, void *userdata) {
        const StackSample *sample = ((const Process *) userdata)->sample;
        Dwarf_Word words[SAMPLE_REGISTERS] = {};

        for (size_t i = 0; i < SAMPLE_REGISTERS; i++)
                words[i] = sample->registers[i];
        if (words[SAMPLE_BP] == 0)
                words[SAMPLE_BP] = find_frame(userdata);
        return dwfl_thread_state_registers(thread, 0, SAMPLE_REGISTERS, words);
}

static void open_process(Process *process) {
        static const Dwfl_Callbacks callbacks = {
                .find_elf = find_elf,
                .find_debuginfo = find_no_debug_file,
        };
        static const Dwfl_Thread_Callbacks threads = {
                .next_thread = next_thread,
                .get_thread = get_thread,
                .memory_read = read_memory,
                .set_initial_registers = set_registers,
        };
        Dwfl *dwfl = dwfl_begin(&callbacks);

        process->dwfl = dwfl;
        if (dwfl && (dwfl_linux_proc_report(dwfl, process->pid) != 0 ||
                     dwfl_report_end(dwfl, NULL, NULL) != 0 ||
                     dwfl_getmodules(dwfl, set_process, process, 0) != 0 ||
                     !dwfl_attach_state(dwfl, NULL, process->pid, &threads, process)))
                close_process(process);
}

/* NULL: there are too many, or it cannot be looked at. */
static Process *find_process(Stacks *stacks, const StackSample *sample) {
        Process *process = NULL;

        for (size_t i = 0; i < stacks->n_processes && !process; i++)
                if (stacks->processes[i].pid == sample->pid)
                        process = &stacks->processes[i];
        if (!process) {
                if (stacks->n_processes == PROCESSES_MAX)
                        return NULL;
                process = &stacks->processes[stacks->n_processes++];
                *process = (Process) { .stacks = stacks, .pid = sample->pid };
        }
        if (!process->dwfl && sample->time_ns - process->looked_ns > LOOK_AGAIN_NS) {
                process->looked_ns = sample->time_ns;
                open_process(process);
        }
        return process->dwfl ? process : NULL;
}

/* It has mapped something since, or executes another program. */
static void forget_mappings(Process *process, uint64_t now_ns) {
        if (now_ns - process->looked_ns <= LOOK_AGAIN_NS)
                return;
        close_process(process);
}

static char *name_function(const Module *module, uint64_t entry) {
        _cleanup_(elf_site_done) ElfSite site = {};
        char text[32];

        (void) snprintf(text, sizeof(text), "0x%llx", (unsigned long long) entry);
        if (elf_file_resolve(module->elf, text, &site, NULL) < 0 || !site.function)
                return NULL;
        return TAKE_PTR(site.function);
}

void stacks_fetch_name(Stacks *stacks, uint32_t index, ElfDebugFinder finder, void *userdata) {
        SeenFunction *function = &stacks->functions[index];
        const Module *module = NULL;

        if (function->name || !function->is_known)
                return;
        for (size_t i = 0; i < stacks->n_modules; i++)
                if (stacks->modules[i]->path == function->path)
                        module = stacks->modules[i];
        if (!module || !module->elf)
                return;
        elf_file_set_debug_finder(module->elf, finder, userdata);
        function->name = name_function(module, function->offset);
        function->is_fetched = function->name;
}

static int add_function(Stacks *stacks, const Module *module, uint64_t entry, bool is_known,
                        uint32_t *ret) {
        SeenFunction *functions, *function;

        for (size_t i = 0; i < stacks->n_functions; i++)
                if (stacks->functions[i].path == module->path &&
                    stacks->functions[i].offset == entry) {
                        *ret = (uint32_t) i;
                        return 0;
                }
        functions = reallocarray(stacks->functions, stacks->n_functions + 1, sizeof(*functions));
        if (!functions)
                return -ENOMEM;
        stacks->functions = functions;
        function = &functions[stacks->n_functions];
        *function = (SeenFunction) {
                .path = module->path,
                .build_id = module->elf ? elf_file_build_id(module->elf) : NULL,
                .offset = entry,
                .name = is_known ? name_function(module, entry) : NULL,
                .is_known = is_known,
                .is_program = module->is_program,
                .fate = module->fate,
                .is_library = is_base_library(module->path),
        };
        function->is_lock = function->name && strstr(function->name, "lock");
        *ret = (uint32_t) stacks->n_functions++;
        return 0;
}

static int compare_places(const void *a, const void *b) {
        const Place *x = a, *y = b;

        if (x->module != y->module)
                return x->module < y->module ? -1 : 1;
        return (x->offset > y->offset) - (x->offset < y->offset);
}

static int find_function(Stacks *stacks, const Module *module, uint64_t offset, uint32_t *ret) {
        Place *place, **found;
        uint64_t entry = offset;
        bool is_known;
        int r;

        place = malloc(sizeof(*place));
        if (!place)
                return -ENOMEM;
        *place = (Place) { .module = module, .offset = offset };
        found = tsearch(place, &stacks->places, compare_places);
        if (!found) {
                free(place);
                return -ENOMEM;
        }
        if (*found != place) {
                free(place);
                *ret = (*found)->function;
                return 0;
        }
        is_known = module->elf && function_find_entry(module->elf, offset, &entry) >= 0;
        r = add_function(stacks, module, is_known ? entry : offset, is_known, &place->function);
        if (r < 0) {
                (void) tdelete(place, &stacks->places, compare_places);
                free(place);
                return r;
        }
        *ret = place->function;
        return 0;
}

typedef struct Walk {
        Stacks *stacks;
        Process *process;
        StretchFrame *frames; /* innermost first */
        size_t n;
        bool unknown; /* a place that is in no file that is known */
        int error;
} Walk;

/* Its file has been looked for by now. */
static int find_own_module(Walk *walk, Dwfl_Module *module, const Module **ret) {
        Dwarf_Addr begin;
        const char *name = dwfl_module_info(module, NULL, &begin, NULL, NULL, NULL, NULL, NULL);

        *ret = find_loaded(walk->process, begin);
        return *ret ? 0 : get_nameless(walk->stacks, name, ret);
}

static int on_frame(Dwfl_Frame *state, void *userdata) {
        Walk *walk = userdata;
        StretchFrame *frame = &walk->frames[walk->n];
        Dwfl_Module *dwfl_module;
        Dwarf_Addr pc;
        Dwarf_Word sp = 0;
        const Module *module;
        uint64_t offset;
        bool is_activation;

        if (!dwfl_frame_pc(state, &pc, &is_activation))
                return DWARF_CB_ABORT;
        /* Behind a call that does not come back, the next function begins. */
        if (!is_activation)
                pc--;
        dwfl_module = dwfl_addrmodule(walk->process->dwfl, pc);
        if (!dwfl_module || !to_offset(dwfl_module, pc, &offset)) {
                walk->unknown = true;
                return DWARF_CB_ABORT;
        }
        (void) dwfl_frame_reg(state, SAMPLE_SP, &sp);
        walk->error = find_own_module(walk, dwfl_module, &module);
        if (walk->error >= 0)
                walk->error = find_function(walk->stacks, module, offset, &frame->function);
        if (walk->error < 0)
                return DWARF_CB_ABORT;
        frame->sp = sp;
        return ++walk->n < STRETCH_FRAMES_MAX ? DWARF_CB_OK : DWARF_CB_ABORT;
}

bool stacks_wait_for_lock(const Stacks *stacks, const StretchFrame *frames, size_t n) {
        for (size_t i = 0; i < n && i < INNERMOST; i++)
                if (stacks->functions[frames[n - 1 - i].function].is_lock)
                        return true;
        return false;
}

int stacks_unwind(Stacks *stacks, const StackSample *sample,
                  StretchFrame ret[static STRETCH_FRAMES_MAX], bool *ret_complete) {
        StretchFrame frames[STRETCH_FRAMES_MAX];
        Walk walk = { .stacks = stacks, .frames = frames };

        walk.process = find_process(stacks, sample);
        if (!walk.process)
                return 0;
        walk.process->sample = sample;
        *ret_complete =
                dwfl_getthread_frames(walk.process->dwfl, sample->tid, on_frame, &walk) == 0;
        if (walk.error < 0)
                return walk.error;
        if (walk.unknown)
                forget_mappings(walk.process, sample->time_ns);
        for (size_t i = 0; i < walk.n; i++)
                ret[i] = frames[walk.n - 1 - i];
        return (int) walk.n;
}
