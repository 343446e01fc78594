// Machine code: an ELF file of which the emulator reads what its kernels take,
// as it does of PTX. The numbers are those that cuobjdump names.
#include <elf.h>

#include <cstring>

#include "device.h"
#include "module.h"

namespace emulator {

constexpr uint8_t of_cuda_13 = 8;             // the ABI of the toolkit's files, which drivers before it refuse
constexpr size_t reserved = 1024;             // of shared memory on 9.0, which a section counts
constexpr uint8_t sized = 4;                  // the form of an attribute that has a length
constexpr uint8_t parameter = 0x17, threads = 5; // attributes

bool is_cubin(const char *image) { return !memcmp(image, ELFMAG, SELFMAG); }

// Cubin is an ELF file in memory.
struct Cubin {
	const char *image;
	const Elf64_Ehdr *header;
	const Elf64_Shdr *sections;

	explicit Cubin(const char *image)
	    : image(image), header((const Elf64_Ehdr *)image), sections((const Elf64_Shdr *)(image + header->e_shoff)) {}

	std::string name(const Elf64_Shdr &s) const { return image + sections[header->e_shstrndx].sh_offset + s.sh_name; }
	const Elf64_Shdr *find(const std::string &wanted) const {
		for (int i = 0; i < header->e_shnum; i++)
			if (name(sections[i]) == wanted) return &sections[i];
		return nullptr;
	}
	int target() const { return header->e_flags >> 8 & 0xff; }
};

// Attribute is one of a kernel's.
struct Attribute {
	uint8_t form, kind;
	uint16_t size; // or the value, where the form is not sized
};

template <class T> static T read(const char *at) {
	T value;
	memcpy(&value, at, sizeof value);
	return value;
}

static Entry describe(const Cubin &c, const std::string &name, const Elf64_Shdr &info) {
	Entry e = {name, {}, 1024, 0};
	for (const char *at = c.image + info.sh_offset, *end = at + info.sh_size; at < end;) {
		auto a = read<Attribute>(at);
		at += sizeof a;
		if (a.form != sized) continue;
		if (a.kind == threads) e.threads = read<int>(at);
		if (a.kind == parameter) { // index, ordinal, offset; the size from bit 18 on
			size_t ordinal = read<uint16_t>(at + 4);
			if (e.sizes.size() <= ordinal) e.sizes.resize(ordinal + 1);
			e.sizes[ordinal] = read<uint32_t>(at + 8) >> 18;
		}
		at += a.size;
	}
	if (auto shared = c.find(".nv.shared." + name)) e.shared = int(shared->sh_size - reserved);
	return e;
}

CUresult load_cubin(Module &module, const char *image) {
	Cubin c(image);
	if (c.header->e_ident[EI_CLASS] != ELFCLASS64 || c.header->e_machine != EM_CUDA) return CUDA_ERROR_INVALID_IMAGE;
	if (c.header->e_ident[EI_ABIVERSION] >= of_cuda_13 && version() < 13000) return CUDA_ERROR_INVALID_IMAGE;
	if (c.target() != compute()) return CUDA_ERROR_NO_BINARY_FOR_GPU;
	const std::string prefix = ".nv.info.";
	for (int i = 0; i < c.header->e_shnum; i++) {
		std::string name = c.name(c.sections[i]);
		if (name.compare(0, prefix.size(), prefix)) continue;
		if (CUresult r = add(module, describe(c, name.substr(prefix.size()), c.sections[i]))) return r;
	}
	return CUDA_SUCCESS;
}

} // namespace emulator
